"""What all doors through which a profile comes in have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from rest_framework import viewsets
from rest_framework.exceptions import APIException, AuthenticationFailed
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request

from leaderboards.api.authentication import MissingClientId, person
from leaderboards.api.context import request_context
from leaderboards.api.flood import limit_flood
from leaderboards.models import ClientId
from profiling.actions import ProfileOrder, Refusal, record_refusal, submit_request
from profiling.api.uploads import read_order
from profiling.models import ProfileRequest
from runners.exceptions import ServiceError


class UploadViewSet(viewsets.ViewSet):
    """Takes a file; a flood of them is refused before anything is read."""

    parser_classes = [MultiPartParser]
    metadata_class = None
    flood_route = "profile"

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        limits: dict[str, Any] = {"route": self.flood_route, "rate": settings.PROFILE_RATE}
        try:
            super().initial(request, *args, **kwargs)
        except (MissingClientId, AuthenticationFailed):
            limit_flood(request._request, user=None, **limits)
            raise
        limit_flood(request._request, user=person(request), **limits)

    def accept_profile(
        self,
        request: Request,
        leaderboard: str,
        gpu: str,
        *,
        origin: ProfileRequest.Origin,
        ignore_deadline: bool = False,
    ) -> ProfileRequest:
        """Read and submit a profile. Whatever is wrong with it is recorded, and raised."""
        with self.recorded(request, leaderboard, gpu, origin):
            order = read_order(request, leaderboard, gpu, via=client_kind(request))
        return submit_request(
            order,
            actor=person(request),
            origin=origin,
            context=request_context(request._request),
            ignore_deadline=ignore_deadline,
        )

    @contextmanager
    def recorded(
        self, request: Request, leaderboard: str, gpu: str, origin: ProfileRequest.Origin
    ) -> Iterator[None]:
        """Keeps a request that could not even be read, with the words of its answer."""
        try:
            yield
        except (APIException, ServiceError) as error:
            answer = self.handle_exception(error)
            record_refusal(
                Refusal(answer.status_code, answer.data["code"], answer.data["detail"]),
                order=ProfileOrder(
                    leaderboard_name=leaderboard, gpu_name=gpu, file_name="", content=b""
                ),
                actor=person(request),
                origin=origin,
                context=request_context(request._request),
            )
            raise


def client_kind(request: Request) -> ClientId.Kind:
    """Whether a CLI or a browser asks."""
    assert isinstance(request.auth, ClientId)
    return ClientId.Kind(request.auth.kind)
