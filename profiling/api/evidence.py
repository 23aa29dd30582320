"""Summaries of what was captured, and comparisons: docs/evidence.md."""

from __future__ import annotations

import json
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpResponse
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from profiling.api.views import ProfileRequestViewSet
from profiling.comparison import compare_captures
from profiling.digest import capture_markdown, csv_lines, markdown
from profiling.evidence import capture_summary, request_summary
from profiling.models import Capture, ProfileRequest

_TYPES = {
    "json": "application/json",
    "md": "text/markdown; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
}
_SIDES = ("base", "other")


class EvidenceViewSet(ProfileRequestViewSet):
    """What a person may read of a request, read in another form."""

    def get_queryset(self) -> QuerySet[ProfileRequest]:
        return super().get_queryset().select_related("job", "revision")

    def summary(self, request: Request, pk: UUID, form: str) -> HttpResponse:
        found = self.get_object()
        captures = list(found.captures.select_related("artifact", "details"))
        told = request_summary(found, captures)
        if form == "json":
            return _sent(json.dumps(told, allow_nan=False), form)
        if form == "md":
            return _sent(markdown(told), form)
        return _sent("".join(csv_lines(told["captures"])), form)

    def capture_summary(self, request: Request, pk: UUID, index: int, form: str) -> HttpResponse:
        told = capture_summary(self._capture(self.get_object(), index))
        if form == "json":
            return _sent(json.dumps(told, allow_nan=False), form)
        if form == "md":
            return _sent(capture_markdown(told), form)
        return _sent("".join(csv_lines([told])), form)

    def compare(self, request: Request) -> Response:
        """`base` and `other` are ids of requests; without `benchmark`, all that both captured."""
        base, other = (self._named(request, side) for side in _SIDES)
        wanted = request.query_params.get("benchmark")
        if wanted is not None and not (wanted.isascii() and wanted.isdigit() and len(wanted) < 10):
            raise ValidationError({"benchmark": "the number of a benchmark is wanted"})
        one, two = (self._captures(found, wanted) for found in (base, other))
        all_metrics = request.query_params.get("metrics") == "all"
        return Response(
            {
                "comparisons": [
                    compare_captures(one[index], two[index], all_metrics=all_metrics)
                    for index in sorted(one.keys() & two.keys())
                ],
                "only_base": [one[index].key for index in sorted(one.keys() - two.keys())],
                "only_other": [two[index].key for index in sorted(two.keys() - one.keys())],
            }
        )

    def _named(self, request: Request, side: str) -> ProfileRequest:
        try:
            key = UUID(request.query_params.get(side, ""))
        except ValueError as error:
            raise ValidationError({side: "the id of a request is wanted"}) from error
        found = self.get_queryset().filter(pk=key).first()
        if found is None:
            raise NotFound
        return found

    def _captures(self, found: ProfileRequest, wanted: str | None) -> dict[int, Capture]:
        rows = found.captures.select_related("details", "artifact").filter(
            **({"benchmark_index": int(wanted)} if wanted is not None else {})
        )
        captures: dict[int, Capture] = {}
        for row in rows:
            row.request = found  # with its revision, which the rows would ask for one by one
            captures[row.benchmark_index] = row
        return captures

    def _capture(self, found: ProfileRequest, index: int) -> Capture:
        rows = found.captures.select_related("artifact", "details")
        capture = rows.filter(benchmark_index=index).first()
        if capture is None:
            raise NotFound
        return capture


def _sent(text: str, form: str) -> HttpResponse:
    """Bytes of our own making: no negotiation, and nothing that a browser would run."""
    return HttpResponse(
        text,
        content_type=_TYPES[form],
        headers={"X-Content-Type-Options": "nosniff", "Cache-Control": "private"},
    )
