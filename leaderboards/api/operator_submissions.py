"""The admin API for submissions and their figures (wire-contract.md, 9 and 12)."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboards.api.forms import read_query
from leaderboards.api.ids import read_id
from leaderboards.api.operators import OperatorView
from leaderboards.api.paging import read_page
from leaderboards.api.wire_shapes import wire_score, wire_time
from leaderboards.deletion import delete_submission
from leaderboards.models import Leaderboard, PopcornUser, Run, Submission, SubmissionJob
from leaderboards.preparation import find_leaderboard
from leaderboards.stats import read_stats
from leaderboards.submission_reads import StageRow, SubmissionRow, read_submission
from runners.exceptions import ServiceError

LIST_DEFAULT, LIST_MAX = 100, 10_000


class StatsForm(serializers.Serializer[None]):
    last_day_only = serializers.BooleanField(default=False)
    leaderboard_name = serializers.CharField(max_length=200, required=False)


class StatsView(OperatorView):
    """GET /admin/stats."""

    def get(self, request: Request) -> Response:
        wanted = read_query(request, StatsForm)
        name: str | None = wanted.get("leaderboard_name")
        if name is not None:
            name = find_leaderboard(name).name
        stats = read_stats(last_day=wanted["last_day_only"], leaderboard_name=name)
        return Response({"status": "ok", "stats": stats})


class LeaderboardSubmissionsView(OperatorView):
    """GET /admin/leaderboards/{leaderboard}/submissions: their numbers, newest first."""

    def get(self, request: Request, leaderboard: str) -> Response:
        page = read_page(request, default=LIST_DEFAULT, maximum=LIST_MAX)
        board = find_leaderboard(leaderboard)
        ids = board.submissions.filter(deleted_at=None).order_by("-id").values_list("id", flat=True)
        return Response(
            {
                "status": "ok",
                "leaderboard": board.name,
                "limit": page.limit,
                "offset": page.offset,
                "submission_ids": list(ids[page.offset : page.offset + page.limit]),
            }
        )


class SubmissionView(OperatorView):
    """GET and DELETE /admin/submissions/{id}: anybody's; what was deleted is not there."""

    def get(self, request: Request, pk: str) -> Response:
        found = read_submission(_standing(), read_id(pk))
        if found is None:
            raise NotFound
        return Response({"status": "ok", "submission": _show(found)})

    def delete(self, request: Request, pk: str) -> Response:
        found = _standing().filter(pk=read_id(pk)).first()
        if found is None:
            raise NotFound
        delete_submission(found, **self.by)
        return Response({"status": "ok", "submission_id": found.pk})


class OfPersonForm(serializers.Serializer[None]):
    leaderboard_id = serializers.IntegerField(min_value=1, max_value=2**63 - 1)
    user_name = serializers.CharField(max_length=150)


class SubmissionsView(OperatorView):
    """DELETE /admin/submissions?leaderboard_id=&user_name=: all of a person's on a leaderboard."""

    @transaction.atomic
    def delete(self, request: Request) -> Response:
        wanted = read_query(request, OfPersonForm)
        board = Leaderboard.objects.existing().filter(pk=wanted["leaderboard_id"]).first()
        if board is None:
            raise NotFound("there is no leaderboard with this number")
        submissions = list(_standing().filter(leaderboard=board, user=_person(wanted["user_name"])))
        for submission in submissions:
            delete_submission(submission, **self.by)
        return Response(
            {
                "status": "ok",
                "leaderboard_id": board.pk,
                "user_name": wanted["user_name"],
                "deleted_job_status": SubmissionJob.objects.filter(
                    submission__in=submissions
                ).count(),
                "deleted_runs": Run.objects.filter(submission__in=submissions).count(),
                "deleted_submissions": len(submissions),
            }
        )


class AmbiguousName(ServiceError):
    code = "ambiguous_name"


def _person(name: str) -> PopcornUser:
    """By the name that is shown; those are not unique. Raises NotFound or AmbiguousName."""
    called = PopcornUser.objects.filter(Q(username=name, display_name="") | Q(display_name=name))
    people = list(called[:2])
    if not people:
        raise NotFound("there is nobody of this name")
    if len(people) > 1:
        raise AmbiguousName(
            f"several people are called {name!r}: delete the submissions by their numbers"
        )
    return people[0]


def _standing() -> QuerySet[Submission]:
    return Submission.objects.filter(deleted_at=None)


def _show(row: SubmissionRow) -> dict[str, Any]:
    progress = row.progress
    return {
        "submission_id": row.id,
        "leaderboard_id": row.leaderboard_id,
        "leaderboard_name": row.leaderboard_name,
        "file_name": row.file_name,
        "user_id": row.user_id,
        "submission_time": wire_time(row.created_at),
        "done": progress.done,
        "code": row.code,
        "runs": [_show_stage(stage) for stage in row.stages],
        "job_status": progress.status,
        "job_error": progress.error,
        "job_last_heartbeat": wire_time(progress.heard_at) if progress.heard_at else None,
    }


def _show_stage(stage: StageRow) -> dict[str, Any]:
    """Unlike its owner, an operator sees what a secret stage printed."""
    run = stage.run or {}
    names = ("stdout", "stderr", "success", "exit_code", "duration", "command")
    return {
        "start_time": wire_time(stage.started_at),
        "end_time": wire_time(stage.finished_at),
        "mode": stage.mode,
        "secret": stage.secret,
        "runner": stage.gpu,
        "score": wire_score(stage.score),
        "passed": stage.passed,
        "result": run.get("result", {}),
        "compilation": stage.compilation,
        "meta": {name: run.get(name) for name in names},
        "system": stage.system,
    }
