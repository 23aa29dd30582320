"""What each operation takes and answers; `make openapi` refuses what is missing here.

Beside the views and not on them, so that they stay readable: their answers are plain dicts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers as s

from kernelbot_site.openapi.shapes import (
    ACCEPTED_REQUEST,
    ACCEPTED_SUBMISSION,
    AUDIT_EVENT,
    BREV_JOB,
    LEADERBOARD,
    LISTED_SUBMISSION,
    OPERATORS_SUBMISSION,
    RANKED,
    SUBMISSION,
    RateLimit,
    RunnerQueue,
    done,
    maybe,
    shape,
    texts,
)
from leaderboards.api import (
    discovery,
    identity,
    operator_submissions,
    operators,
    problems,
    rankings,
)
from leaderboards.api import submissions as own
from profiling.api import brev, evidence, serializers, submissions, trail, views
from profiling.models import ProfileRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """`answers` are by status, or by status and media type; `query` are parameters or a form."""

    answers: dict[Any, Any]
    body: Any = None
    query: tuple[Any, ...] = ()
    # Where the address gives none that is unique.
    id: str = ""


def _query(name: str, kind: Any = str, **options: Any) -> OpenApiParameter:
    return OpenApiParameter(name, kind, OpenApiParameter.QUERY, **options)


def _ok(answer: Any, **fields: Any) -> Operation:
    return Operation(answers={200: answer}, **fields)


def _list(child: s.Serializer[Any]) -> Any:
    return s.ListSerializer(child=child)


class FileForm(s.Serializer[None]):
    file = s.FileField(help_text="UTF-8, at most 1,000,000 bytes.")


class ProfileForm(serializers.CaptureOptionsSerializer):
    file = s.FileField(help_text="UTF-8, at most 1,000,000 bytes.")


class BrevForm(ProfileForm):
    leaderboard = s.CharField()


_PAGE = (_query("limit", int), _query("offset", int))
_STREAM = {(200, "text/event-stream"): OpenApiTypes.STR}
_FILE = Operation(answers={(200, "application/octet-stream"): OpenApiTypes.BINARY})
_ZIP = Operation(answers={(200, "application/zip"): OpenApiTypes.BINARY})
_SUMMARY = Operation(
    answers={
        (200, "application/json"): OpenApiTypes.OBJECT,
        (200, "text/markdown"): OpenApiTypes.STR,
        (200, "text/csv"): OpenApiTypes.STR,
    }
)
_NOT_OFFERED = Operation(answers={})
UNKNOWN = Operation(answers={200: OpenApiTypes.OBJECT})
_ACCEPTS = done("Acceptance", accepts_jobs=s.BooleanField())
_BANNED = done("BanAnswer", user_id=s.CharField(), banned=s.BooleanField())
_SENT = Operation(answers={202: ACCEPTED_SUBMISSION}, body=ProfileForm)

_PUBLIC: dict[tuple[type, str], Operation] = {
    (discovery.LeaderboardsView, "get"): _ok(_list(LEADERBOARD)),
    (discovery.GpusView, "get"): _ok({"type": "array", "items": {"type": "string"}}),
    (discovery.RunnerQueueView, "get"): _ok(RunnerQueue()),
    (discovery.JoinView, "post"): _ok(
        done("Joined", leaderboards=texts()), body=discovery.JoinForm
    ),
    (identity.AuthInitView, "get"): _ok(
        shape("IssuedId", state=s.CharField()), query=(_query("provider", required=True),)
    ),
    (rankings.RankingViewSet, "list"): _ok(_list(RANKED), query=_PAGE),
    (rankings.RankingViewSet, "count"): _ok(
        shape("Count", count=s.IntegerField()), query=(_query("user_id"),)
    ),
    (own.UserSubmissionViewSet, "list"): _ok(
        _list(LISTED_SUBMISSION), query=(*_PAGE, _query("leaderboard"))
    ),
    (own.UserSubmissionViewSet, "retrieve"): _ok(SUBMISSION),
    (own.UserSubmissionViewSet, "destroy"): _ok(
        done("DeletedSubmission", submission_id=s.IntegerField())
    ),
    (submissions.SubmissionViewSet, "create"): _SENT,
    (submissions.AdminSubmissionViewSet, "create"): _SENT,
    (submissions.StreamedSubmissionViewSet, "create"): Operation(answers=_STREAM, body=FileForm),
    (brev.BrevProfileViewSet, "create"): Operation(
        answers={202: BREV_JOB}, body=BrevForm, id="profile_brev_create"
    ),
    (brev.BrevJobViewSet, "retrieve"): _ok(BREV_JOB),
    (brev.BrevJobViewSet, "artifact"): _ZIP,
}
_PROFILES: dict[tuple[type, str], Operation] = {
    (views.ProfileViewSet, "create"): Operation(
        answers=_STREAM | {202: ACCEPTED_REQUEST}, body=ProfileForm
    ),
    (views.ProfileRequestViewSet, "list"): _ok(
        serializers.RequestSummarySerializer(many=True),
        query=(_query("verdict", enum=ProfileRequest.Verdict.values),),
    ),
    (views.ProfileRequestViewSet, "retrieve"): _ok(serializers.RequestSerializer),
    (views.ProfileRequestViewSet, "stream"): Operation(answers=_STREAM),
    (views.ProfileRequestViewSet, "cancel"): _ok(
        shape("CancelledRequest", id=s.UUIDField(), status=s.CharField())
    ),
    (views.ProfileRequestViewSet, "rerun"): Operation(answers={202: ACCEPTED_REQUEST}),
    (views.ProfileRequestViewSet, "archive"): _ZIP,
    (views.ProfileRequestViewSet, "file"): _FILE,
    (trail.TrailViewSet, "trail"): _ok(
        shape(
            "AuditPage",
            next=s.URLField(allow_null=True),
            previous=s.URLField(allow_null=True),
            results=_list(AUDIT_EVENT),
        ),
        query=(_query("cursor"),),
    ),
    (evidence.EvidenceViewSet, "summary"): _SUMMARY,
    (evidence.EvidenceViewSet, "capture_summary"): _SUMMARY,
    (evidence.EvidenceViewSet, "compare"): _ok(
        shape(
            "Comparisons",
            comparisons=s.ListField(child=s.DictField()),
            only_base=texts(),
            only_other=texts(),
        ),
        query=(
            _query("base", OpenApiTypes.UUID, required=True),
            _query("other", OpenApiTypes.UUID, required=True),
            _query("benchmark", int),
            _query("metrics", enum=["all"]),
        ),
    ),
}
_OPERATORS: dict[tuple[type, str], Operation] = {
    (operators.AcceptanceView, "post"): _ok(_ACCEPTS),
    (operators.LeaderboardsView, "post"): _ok(
        done("CreatedLeaderboard", leaderboard=s.CharField()), body=operators.DirectoryForm
    ),
    (operators.LeaderboardView, "delete"): _ok(
        done("DeletedLeaderboard", leaderboard=s.CharField(), force=s.BooleanField()),
        query=(operators.ForceForm,),
    ),
    (operators.VisibilityView, "post"): _ok(
        done("Visibility", leaderboard=s.CharField(), visibility=s.CharField()),
        body=operators.VisibilityForm,
    ),
    (operators.InvitesView, "post"): _ok(
        done("CreatedInvites", leaderboards=texts(), codes=texts()), body=operators.InvitesForm
    ),
    (operators.InviteView, "delete"): _ok(
        done("RevokedInvite", code=s.CharField(), was_claimed=s.BooleanField())
    ),
    (operators.LeaderboardInvitesView, "get"): _ok(
        done(
            "Invites",
            leaderboard=s.CharField(),
            invites=s.ListField(
                child=shape(
                    "Invite",
                    code=s.CharField(),
                    user_id=maybe(s.CharField),
                    user_name=maybe(s.CharField),
                    claimed_at=maybe(s.DateTimeField),
                    created_at=s.DateTimeField(),
                )
            ),
        )
    ),
    (operators.RateLimitsView, "get"): _ok(
        done("RateLimits", leaderboard=s.CharField(), rate_limits=_list(RateLimit()))
    ),
    (operators.RateLimitsView, "put"): _ok(
        done("ChangedRateLimit", rate_limit=RateLimit()), body=operators.RateLimitForm
    ),
    (operators.RateLimitView, "delete"): _ok(
        done("RemovedRateLimit", leaderboard=s.CharField(), mode_category=s.CharField())
    ),
    (problems.UpdateProblemsView, "post"): _ok(
        done(
            "UpdatedProblems",
            created=texts(),
            updated=texts(),
            skipped=s.ListField(child=shape("Skipped", name=s.CharField(), reason=s.CharField())),
            errors=s.ListField(child=shape("BadProblem", name=s.CharField(), error=s.CharField())),
        ),
        body=problems.UpdateForm,
    ),
    (operators.NotOfferedView, "post"): _NOT_OFFERED,
    (operator_submissions.StatsView, "get"): _ok(
        done("Stats", stats=s.DictField()), query=(operator_submissions.StatsForm,)
    ),
    (operator_submissions.LeaderboardSubmissionsView, "get"): _ok(
        done(
            "SubmissionNumbers",
            leaderboard=s.CharField(),
            limit=s.IntegerField(),
            offset=s.IntegerField(),
            submission_ids=s.ListField(child=s.IntegerField()),
        ),
        query=_PAGE,
    ),
    (operator_submissions.SubmissionView, "get"): _ok(OPERATORS_SUBMISSION),
    (operator_submissions.SubmissionView, "delete"): _ok(
        done("DeletedByOperator", submission_id=s.IntegerField())
    ),
    (operator_submissions.SubmissionsView, "delete"): _ok(
        done(
            "DeletedSubmissions",
            leaderboard_id=s.IntegerField(),
            user_name=s.CharField(),
            deleted_job_status=s.IntegerField(),
            deleted_runs=s.IntegerField(),
            deleted_submissions=s.IntegerField(),
        ),
        query=(operator_submissions.OfPersonForm,),
        id="admin_submissions_destroy_of_person",
    ),
    (identity.BanView, "post"): _ok(_BANNED, body=identity.BanSerializer),
    (identity.BanView, "delete"): _ok(_BANNED),
}
OPERATIONS = _PUBLIC | _PROFILES | _OPERATORS
