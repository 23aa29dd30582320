"""Submissions in every mode: in the background, and as a stream for older clients.

Here and not among the leaderboards, since a profile is one of the modes.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.http import StreamingHttpResponse
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboards.api.authentication import ClientIdAuthentication, CliIdAuthentication, person
from leaderboards.api.context import request_context
from leaderboards.api.operator_token import RequiresAdminToken
from leaderboards.discovery import runner_queue
from leaderboards.models import SubmissionJob
from leaderboards.preparation import read_mode
from leaderboards.submitting import SubmissionOrder, submit
from profiling.api.accepting import UploadViewSet, client_kind
from profiling.api.streams import stream_profile, stream_submission
from profiling.api.uploads import read_upload
from profiling.models import ProfileRequest
from runners.gpu.contract import Mode


class ModesViewSet(UploadViewSet):
    """The modes that leaderboards run by themselves."""

    flood_route = "submission"
    ignore_deadline = False

    def accept(self, request: Request, leaderboard: str, gpu: str, mode: Mode) -> SubmissionJob:
        _, upload = read_upload(request)
        order = SubmissionOrder(
            leaderboard_name=leaderboard,
            gpu_name=gpu,
            mode=mode,
            file_name=upload.name or "",
            content=upload.read(),
            via=client_kind(request),
        )
        return submit(
            order,
            actor=person(request),
            context=request_context(request._request),
            ignore_deadline=self.ignore_deadline,
        )


class SubmissionViewSet(ModesViewSet):
    """POST /submission/{leaderboard}/{gpu}/{mode}: wire-contract.md, 5.1."""

    authentication_classes = [ClientIdAuthentication]

    def create(self, request: Request, leaderboard: str, gpu: str, mode: str) -> Response:
        wanted = read_mode(mode)
        if wanted is Mode.PROFILE:
            made = self.accept_profile(
                request,
                leaderboard,
                gpu,
                origin=ProfileRequest.Origin.API,
                ignore_deadline=self.ignore_deadline,
            )
            of = SubmissionJob.objects.select_related("job").get(job=made.job)
        else:
            of = self.accept(request, leaderboard, gpu, wanted)
        body = {
            "details": {"id": of.submission_id, "job_status_id": of.pk},
            "runner_queue": _queue_of(of.job.gpu),
            "status": "accepted",
        }
        place = f"{settings.PUBLIC_URL}/user/submissions/{of.submission_id}"
        return Response(body, 202, headers={"Location": place})


class AdminSubmissionViewSet(SubmissionViewSet):
    """POST /admin/submission/…: somebody's submission after the deadline, by leave of operators."""

    permission_classes = [RequiresAdminToken]
    ignore_deadline = True


class StreamedSubmissionViewSet(ModesViewSet):
    """POST /{leaderboard}/{gpu}/{mode}: wire-contract.md, 6.6. Options are no part of it."""

    authentication_classes = [CliIdAuthentication]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if request.method != "POST":
            raise NotFound("there is nothing at this address")
        super().initial(request, *args, **kwargs)

    def create(
        self, request: Request, leaderboard: str, gpu: str, mode: str
    ) -> StreamingHttpResponse:
        wanted = read_mode(mode)
        if wanted is Mode.PROFILE:
            origin = ProfileRequest.Origin.CLI
            return stream_profile(
                request, self.accept_profile(request, leaderboard, gpu, origin=origin)
            )
        return stream_submission(request, self.accept(request, leaderboard, gpu, wanted))


def _queue_of(gpu: str) -> dict[str, Any] | None:
    """The submission is accepted, whether or not the queue can be read."""
    try:
        return runner_queue(gpu)
    except DatabaseError:
        return None
