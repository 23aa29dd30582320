"""What answers look like, for the schema. The wire contract says it in full."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import inline_serializer
from rest_framework import serializers as s

Shape = s.Serializer[Any]


def shape(component: str, /, **fields: s.Field[Any, Any, Any, Any] | Shape) -> Shape:
    return inline_serializer(component, fields)


def maybe(field: type[s.Field[Any, Any, Any, Any]]) -> s.Field[Any, Any, Any, Any]:
    return field(allow_null=True)


def done(component: str, /, **fields: s.Field[Any, Any, Any, Any] | Shape) -> Shape:
    """What the admin API answers after it did as it was told."""
    return shape(component, status=s.CharField(help_text="ok"), **fields)


def texts() -> s.ListField:
    return s.ListField(child=s.CharField())


ERROR = shape(
    "Error",
    detail=s.CharField(help_text="What is wrong, for people."),
    code=s.CharField(help_text="Stable, for programs."),
    errors=s.ListField(
        child=shape("FieldError", field=s.CharField(), message=s.CharField(), code=s.CharField()),
        required=False,
        help_text="What is wrong, field by field.",
    ),
    retry_after=s.IntegerField(required=False, help_text="Seconds; also sent as Retry-After."),
)


class RunnerQueue(s.Serializer[Any]):
    runner = s.CharField(allow_null=True)
    gpu = s.CharField()
    queued_jobs = s.IntegerField(allow_null=True)
    running_jobs = s.IntegerField(allow_null=True)
    available_runners = s.IntegerField()
    status = s.CharField(help_text="available or unavailable")
    error = s.CharField(allow_null=True)


class RateLimit(s.Serializer[Any]):
    id = s.IntegerField()
    leaderboard_id = s.IntegerField()
    leaderboard_name = s.CharField()
    mode_category = s.CharField()
    max_submissions_per_hour = s.IntegerField()


LEADERBOARD = shape(
    "Leaderboard",
    id=s.IntegerField(),
    name=s.CharField(),
    creator_id=s.IntegerField(),
    deadline=s.DateTimeField(),
    description=s.CharField(),
    task=s.DictField(help_text="Empty for a closed leaderboard."),
    gpu_types=texts(),
    forum_id=s.IntegerField(),
    visibility=s.CharField(),
)
RANKED = shape(
    "RankedRun",
    submission_id=s.IntegerField(),
    rank=s.IntegerField(),
    submission_name=s.CharField(),
    submission_time=s.DateTimeField(),
    submission_score=s.FloatField(help_text="Seconds."),
    leaderboard_name=s.CharField(),
    user_id=s.JSONField(help_text="A number where every JSON reader reads it exactly, or text."),
    user_name=s.CharField(),
    gpu_type=s.CharField(),
)
ACCEPTED_SUBMISSION = shape(
    "AcceptedSubmission",
    details=shape("AcceptedSubmissionDetails", id=s.IntegerField(), job_status_id=s.IntegerField()),
    runner_queue=RunnerQueue(allow_null=True),
    status=s.CharField(help_text="accepted"),
)
LISTED_SUBMISSION = shape(
    "ListedSubmission",
    id=s.IntegerField(),
    leaderboard_name=s.CharField(),
    file_name=s.CharField(),
    submission_time=s.DateTimeField(),
    done=s.BooleanField(),
    runs=s.ListField(
        child=shape("ListedRun", gpu_type=s.CharField(), score=maybe(s.CharField)),
    ),
)
_JOB_STATUS = "pending, running, succeeded, failed, timed_out or hacked"


def _stage(component: str, **more: Any) -> s.ListField:
    return s.ListField(
        child=shape(
            component,
            start_time=s.DateTimeField(),
            end_time=s.DateTimeField(),
            mode=s.CharField(),
            secret=s.BooleanField(),
            runner=s.CharField(),
            score=maybe(s.CharField),
            passed=s.BooleanField(),
            **more,
        )
    )


SUBMISSION = shape(
    "Submission",
    id=s.IntegerField(),
    leaderboard_id=s.IntegerField(),
    leaderboard_name=s.CharField(),
    file_name=s.CharField(),
    user_id=s.CharField(),
    submission_time=s.DateTimeField(),
    done=s.BooleanField(),
    code=s.CharField(),
    runs=_stage(
        "SubmissionRun",
        result=s.DictField(child=s.CharField(), required=False),
        diagnostics=s.DictField(required=False),
    ),
    job=shape(
        "SubmissionJob",
        status=s.CharField(help_text=_JOB_STATUS),
        error=maybe(s.CharField),
        last_heartbeat=maybe(s.DateTimeField),
    ),
    runner_queue=RunnerQueue(),
)
OPERATORS_SUBMISSION = done(
    "OperatorsSubmissionAnswer",
    submission=shape(
        "OperatorsSubmission",
        submission_id=s.IntegerField(),
        leaderboard_id=s.IntegerField(),
        leaderboard_name=s.CharField(),
        file_name=s.CharField(),
        user_id=s.CharField(),
        submission_time=s.DateTimeField(),
        done=s.BooleanField(),
        code=s.CharField(),
        runs=_stage(
            "OperatorsRun",
            result=s.DictField(child=s.CharField()),
            compilation=maybe(s.DictField),
            meta=s.DictField(),
            system=s.DictField(),
        ),
        job_status=s.CharField(help_text=_JOB_STATUS),
        job_error=maybe(s.CharField),
        job_last_heartbeat=maybe(s.DateTimeField),
    ),
)
ACCEPTED_REQUEST = shape(
    "AcceptedProfileRequest",
    id=s.UUIDField(),
    status=s.CharField(),
    urls=s.DictField(child=s.URLField()),
)
BREV_JOB = shape(
    "BrevJob",
    job_id=s.UUIDField(),
    status=s.CharField(help_text="queued, running, succeeded, failed or timed_out"),
    queue_position=s.IntegerField(required=False),
    error=s.CharField(required=False),
    leaderboard=s.CharField(required=False),
    artifacts=s.ListField(
        child=shape("BrevArtifact", name=s.CharField(), url=s.CharField()), required=False
    ),
    messages=s.ListField(child=s.CharField(), required=False),
)

AUDIT_EVENT = shape(
    "AuditEvent",
    created_at=s.DateTimeField(),
    verb=s.CharField(),
    actor=maybe(s.CharField),
    actor_label=s.CharField(),
    data=s.DictField(),
    request_id=maybe(s.CharField),
    address=maybe(s.CharField),
    client_version=maybe(s.CharField),
)
