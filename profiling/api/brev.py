"""The Brev protocol: another door to the same profile requests (wire-contract.md, 6.7)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.http.response import HttpResponseBase
from django.urls import reverse
from rest_framework import viewsets
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboards.api.authentication import CliIdAuthentication, person
from leaderboards.api.context import request_context
from leaderboards.api.patience import PatientReads
from leaderboards.exceptions import GpuNotProfilable
from leaderboards.models import Leaderboard
from leaderboards.preparation import find_leaderboard
from profiling.addresses import file_name
from profiling.api.accepting import UploadViewSet
from profiling.api.uploads import read_upload
from profiling.downloads import send_archive
from profiling.models import Capture, ProfileRequest
from profiling.streaming.endings import describe_failure
from profiling.streaming.news import JobNews, read_news
from profiling.trail import recorded
from profiling.wire_report import messages_of
from runners.registry import find_gpu
from runners.states import ON_THE_WIRE, JobStatus

# The protocol calls waiting by its own word; all others are those of the polls.
_STATUS = ON_THE_WIRE | {JobStatus.QUEUED: "queued", JobStatus.STARTING: "queued"}


class BrevProfileViewSet(UploadViewSet):
    """POST /profile: the leaderboard is in the form, and the GPU is the leaderboard's first."""

    authentication_classes = [CliIdAuthentication]

    def create(self, request: Request) -> Response:
        origin = ProfileRequest.Origin.BREV
        with self.recorded(request, "", "", origin):
            board = find_leaderboard(_leaderboard_of(request))
            gpu = _first_profilable(board)
        made = self.accept_profile(request, board.name, gpu, origin=origin)
        assert made.job_id is not None
        return Response(_waiting(made, read_news([made.job_id])[made.job_id]), 202)


def _leaderboard_of(request: Request) -> str:
    form, _ = read_upload(request)
    named = form.getlist("leaderboard")
    if len(named) != 1 or not isinstance(named[0], str):
        raise ValidationError({"leaderboard": "name one leaderboard"})
    return named[0]


def _first_profilable(board: Leaderboard) -> str:
    for name in board.gpu_types:
        gpu = find_gpu(settings.GPU_TYPES, name)
        if gpu and gpu.ncu and gpu.device_count == 1:
            return gpu.name
    raise GpuNotProfilable(f"leaderboard {board.name!r} has no GPU on which profiling is offered")


class BrevJobViewSet(PatientReads, viewsets.ViewSet):
    """GET /jobs/{id} and its artifacts; polls are never rate limited."""

    authentication_classes = [CliIdAuthentication]
    metadata_class = None

    def retrieve(self, request: Request, pk: UUID) -> Response:
        found = self._find(request, pk)
        assert found.job is not None
        news = read_news([found.job.pk])[found.job.pk]
        if not news.is_final:
            return Response(_waiting(found, news))
        return Response(_ended(found))

    def artifact(self, request: Request, pk: UUID, name: str) -> HttpResponseBase:
        found = self._find(request, pk)
        for capture in found.captures.select_related("artifact"):
            if capture.artifact is not None and _artifact_name(found, capture) == name:
                sent = send_archive(request._request, found, capture, capture.artifact)
                actor, context = person(request), request_context(request._request)
                return recorded(sent, found, capture, "archive", actor=actor, context=context)
        raise NotFound

    def _find(self, request: Request, pk: UUID) -> ProfileRequest:
        visible = ProfileRequest.objects.visible_to(person(request))
        found = visible.select_related("job", "submission__source").filter(pk=pk).first()
        if found is None:
            raise NotFound
        return found


def _waiting(request: ProfileRequest, news: JobNews) -> dict[str, Any]:
    place = {} if news.queue_position is None else {"queue_position": news.queue_position}
    return {"job_id": str(request.pk), "status": _STATUS[news.status]} | place


def _ended(request: ProfileRequest) -> dict[str, Any]:
    """A profile without a single archive is a failed job, whatever became of its run."""
    assert request.job is not None
    captures = list(request.captures.select_related("artifact"))
    stored = [capture for capture in captures if capture.artifact is not None]
    shown = {"job_id": str(request.pk), "status": _STATUS[JobStatus(request.job.status)]}
    if request.job.status != JobStatus.SUCCEEDED:
        return shown | {"error": describe_failure(request, request.job)["detail"]}
    messages = messages_of(request, captures)
    if not stored:
        return shown | {"status": "failed", "error": "; ".join(messages) or "nothing was captured"}
    return shown | {
        "leaderboard": request.leaderboard_name,
        "artifacts": [_artifact(request, capture) for capture in stored],
        "messages": messages,
    }


def _artifact(request: ProfileRequest, capture: Capture) -> dict[str, str]:
    """A path and no address: the client sends its id to whatever origin it is told."""
    name = _artifact_name(request, capture)
    return {"name": name, "url": reverse("brev-artifact", args=[request.pk, name])}


def _artifact_name(request: ProfileRequest, capture: Capture) -> str:
    return file_name(request, capture, ".zip")
