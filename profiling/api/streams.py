"""Event streams as answers: of a profile, and of a submission in any other mode."""

from __future__ import annotations

from functools import partial

from django.conf import settings
from django.http import StreamingHttpResponse
from rest_framework.request import Request

from leaderboards.models import SubmissionJob
from profiling.addresses import request_urls
from profiling.models import ProfileRequest
from profiling.streaming.endings import read_ending
from profiling.streaming.news import read_news
from profiling.streaming.stream import Stream, Subject
from profiling.streaming.submission_endings import read_submission_ending
from runners.models import Job


def stream_profile(request: Request, accepted: ProfileRequest) -> StreamingHttpResponse:
    """The events of a profile, new or old."""
    assert accepted.job is not None
    subject = Subject(
        id=str(accepted.pk),
        noun="profile",
        take_up_at=request_urls(accepted)["stream"],
        read_ending=partial(read_ending, accepted.pk),
    )
    return _answer(request, subject, accepted.job, {"X-Profile-Request": str(accepted.pk)})


def stream_submission(request: Request, accepted: SubmissionJob) -> StreamingHttpResponse:
    """The events of a submission's passes, one after the other."""
    number = accepted.submission_id
    subject = Subject(
        id=f"submission {number}",
        noun="submission",
        take_up_at=f"{settings.PUBLIC_URL}/user/submissions/{number}",
        read_ending=partial(read_submission_ending, number),
    )
    return _answer(request, subject, accepted.job, {"X-Submission": str(number)})


def _answer(
    request: Request, subject: Subject, job: Job, headers: dict[str, str]
) -> StreamingHttpResponse:
    request._request.close()  # lets go of the upload, which may be a megabyte
    stream = Stream(subject, job.pk, read_news([job.pk])[job.pk])
    return StreamingHttpResponse(
        stream.events(),
        content_type="text/event-stream",
        # No proxy may hold events back, compress or keep them (FR-27).
        headers={"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"} | headers,
    )
