"""The profile endpoint of the CLI, and what can be done with a request afterwards."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework import viewsets
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboards.api.authentication import (
    CliIdAuthentication,
    OperatorSession,
    person,
)
from leaderboards.api.context import request_context
from leaderboards.api.flood import limit_flood
from leaderboards.api.uploads import require_whole_body
from leaderboards.exceptions import Banned
from profiling.actions import (
    cancel_request,
    rerun_request,
)
from profiling.addresses import ARCHIVE_FILES, request_urls
from profiling.api.accepting import UploadViewSet
from profiling.api.serializers import RequestSerializer, RequestSummarySerializer
from profiling.api.streams import stream_profile
from profiling.downloads import send_file, send_or_sign_archive
from profiling.models import Capture, ProfileRequest
from profiling.streaming.endings import describe_failure
from profiling.streaming.news import read_news
from profiling.trail import recorded
from runners.models import Artifact
from runners.states import JobStatus

CLI_CANCEL_REASON = "cancelled by its owner"


def _accepted(request: ProfileRequest) -> Response:
    """202 for who does not want to wait."""
    urls = request_urls(request)
    body = {"id": str(request.pk), "status": request.status, "urls": urls}
    return Response(body, 202, headers={"Location": urls["self"]})


def _wants_no_stream(request: Request) -> bool:
    preferences = request.headers.get("Prefer", "").lower().replace(";", ",").split(",")
    return "respond-async" in (preference.strip() for preference in preferences)


class ProfileViewSet(UploadViewSet):
    """POST /profile/{leaderboard}/{gpu}: wire-contract.md, 6.2."""

    authentication_classes = [CliIdAuthentication]

    def create(self, request: Request, leaderboard: str, gpu: str) -> HttpResponseBase:
        no_stream = _wants_no_stream(request)
        origin = ProfileRequest.Origin.API if no_stream else ProfileRequest.Origin.CLI
        made = self.accept_profile(request, leaderboard, gpu, origin=origin)
        return _accepted(made) if no_stream else stream_profile(request, made)


class NewestFirst(CursorPagination):
    ordering = "-created_at"
    page_size = 20
    page_size_query_param = "limit"
    max_page_size = 100


class ProfileRequestViewSet(viewsets.GenericViewSet[ProfileRequest]):
    """A person's own requests. An operator who may see them in the admin site may read all."""

    pagination_class = NewestFirst
    metadata_class = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        require_whole_body(request._request)

    def get_authenticators(self) -> list[BaseAuthentication]:
        if self.request.method in ("GET", "HEAD"):
            return [OperatorSession(), CliIdAuthentication()]
        return [CliIdAuthentication()]

    def get_queryset(self) -> QuerySet[ProfileRequest]:
        user = person(self.request)
        signed_in = isinstance(self.request.successful_authenticator, OperatorSession)
        if signed_in and user.has_perm("profiling.view_profilerequest"):
            found = ProfileRequest.objects.filter(job__isnull=False)
        else:
            found = ProfileRequest.objects.visible_to(user)
        return found.select_related("job", "revision").defer("revision__definition_json")

    def get_object(self) -> ProfileRequest:
        return self._find(self.get_queryset())

    def _find(self, visible: QuerySet[ProfileRequest]) -> ProfileRequest:
        """What is not theirs is not there for a person, in the very same words."""
        found = visible.filter(pk=self.kwargs["pk"]).first()
        if found is None:
            raise NotFound
        return found

    def list(self, request: Request) -> Response:
        page = self.paginate_queryset(self._filtered(request))
        assert page is not None
        news = read_news([each.job_id for each in page if each.job_id])
        rows = RequestSummarySerializer(page, many=True, context={"news": news}).data
        return self.get_paginated_response(rows)

    def _filtered(self, request: Request) -> QuerySet[ProfileRequest]:
        """By `verdict`, where one is given."""
        verdict = request.query_params.get("verdict")
        if verdict is None:
            return self.get_queryset()
        if verdict not in ProfileRequest.Verdict.values:
            wanted = ", ".join(ProfileRequest.Verdict.values)
            raise ValidationError({"verdict": f"one of {wanted} is wanted"})
        return self.get_queryset().filter(verdict=verdict)

    def retrieve(self, request: Request, pk: UUID) -> Response:
        found = self._find(self.get_queryset().prefetch_related("captures__artifact"))
        assert found.job is not None
        failed = found.job.is_final and found.job.status != JobStatus.SUCCEEDED
        context = {
            "news": read_news([found.job.pk]),
            "error": describe_failure(found, found.job) if failed else None,
        }
        return Response(RequestSerializer(found, context=context).data)

    def stream(self, request: Request, pk: UUID) -> StreamingHttpResponse | HttpResponse:
        found = self.get_object()
        if request.method == "HEAD":
            return HttpResponse(content_type="text/event-stream")
        return stream_profile(request, found)

    def cancel(self, request: Request, pk: UUID) -> Response:
        found = self.get_object()
        cancel_request(
            found,
            actor=person(request),
            reason=CLI_CANCEL_REASON,
            context=request_context(request._request),
        )
        return Response({"id": str(found.pk), "status": JobStatus.CANCELLED.value})

    def rerun(self, request: Request, pk: UUID) -> Response:
        found = self.get_object()
        limit_flood(
            request._request,
            route=UploadViewSet.flood_route,
            rate=settings.PROFILE_RATE,
            user=person(request),
        )
        if person(request).banned_at is not None:
            raise Banned("this account is banned from submitting")
        made = rerun_request(
            found,
            actor=person(request),
            origin=ProfileRequest.Origin.API,
            context=request_context(request._request),
        )
        return _accepted(made)

    def archive(self, request: Request, pk: UUID, index: int) -> HttpResponseBase:
        found, capture, stored = self._stored_capture(index)
        sent = send_or_sign_archive(request._request, found, capture, stored)
        return self._recorded(sent, found, capture, "archive")

    def file(self, request: Request, pk: UUID, index: int, name: str) -> HttpResponseBase:
        found, capture, stored = self._stored_capture(index)
        if name not in ARCHIVE_FILES:
            raise NotFound
        sent = send_file(request._request, found, capture, stored, name)
        return self._recorded(sent, found, capture, name)

    def _recorded(
        self, sent: HttpResponseBase, found: ProfileRequest, capture: Capture, name: str
    ) -> HttpResponseBase:
        actor, context = person(self.request), request_context(self.request._request)
        return recorded(sent, found, capture, name, actor=actor, context=context)

    def _stored_capture(self, index: int) -> tuple[ProfileRequest, Capture, Artifact]:
        found = self.get_object()
        capture = found.captures.filter(benchmark_index=index).select_related("artifact").first()
        if capture is None or capture.artifact is None:
            raise NotFound
        return found, capture, capture.artifact
