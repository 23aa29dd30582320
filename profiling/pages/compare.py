"""Two requests beside each other, capture by capture, from stored facts alone."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponse
from django.shortcuts import render

from profiling.comparison import compare_captures
from profiling.models import Capture, ProfileRequest
from profiling.pages.places import Place, with_query
from profiling.pages.values import shown, state_shown

DURATION = "gpu__time_duration.sum"
# Launches whose table is open from the start.
OPEN_PAIRS = 3


def send_comparison(
    http: HttpRequest,
    base: ProfileRequest,
    other: ProfileRequest,
    place: Place,
    *,
    template: str,
    facts: dict[str, Any],
) -> HttpResponse:
    """`template` is the one around it, `facts` are its own. A constant number of queries."""
    named = place.name(other)
    indexes = _in_both(base, other)
    asked = http.GET.get("capture", "")
    chosen = next((index for index in indexes if str(index) == asked), next(iter(indexes), None))
    context = {
        **facts,
        "base": template,
        "title": "Comparison of two profiles",
        "request_shown": base,
        "sides": [
            {"name": "A", "row": base, "href": place.page()},
            {"name": "B", "row": other, "href": place.page(other)},
        ],
        "swapped": with_query(place.compare(other), **{"with": place.name(base)}),
        "indexes": [
            {
                "index": index,
                "chosen": index == chosen,
                "href": with_query(place.compare(), **{"with": named, "capture": index}),
            }
            for index in indexes
        ],
        "compared": None if chosen is None else _compared(base, other, chosen),
    }
    response = render(http, "profiling/review/comparison.html", context)
    response["Cache-Control"] = "private, no-store"
    return response


def _in_both(base: ProfileRequest, other: ProfileRequest) -> list[int]:
    """Benchmarks that both have a capture of."""
    found = Capture.objects.filter(request__in=[base, other]).values_list(
        "benchmark_index", "request"
    )
    keys = {request.pk for request in (base, other)}
    by_index: dict[int, set[Any]] = {}
    for index, request in found:
        by_index.setdefault(index, set()).add(request)
    return sorted(index for index, requests in by_index.items() if requests == keys)


def _compared(base: ProfileRequest, other: ProfileRequest, index: int) -> dict[str, Any]:
    found = Capture.objects.filter(request__in=[base, other], benchmark_index=index)
    captures = found.select_related("request__revision", "artifact", "details")
    by_request = {capture.request_id: capture for capture in captures}
    said = compare_captures(by_request[base.pk], by_request[other.pk])
    return said | {
        "pairs": [
            pair
            | {
                "open": place < OPEN_PAIRS,
                "rows": [_row(change) for change in pair["metrics"]],
            }
            for place, pair in enumerate(said["launches"])
        ]
    }


def _row(change: dict[str, Any]) -> dict[str, Any]:
    percent = change["change_pct"]
    # Of the duration alone it is certain which way is better.
    judged = change["metric"] == DURATION and percent
    return {
        "label": change["label"] or change["metric"],
        "metric": change["metric"],
        "base": _value(change["base"], change["base_state"], change["unit"]),
        "other": _value(change["other"], change["other_state"], change["unit"]),
        "change": _change(percent),
        "judged": ("better" if percent < 0 else "worse") if judged else "",
    }


def _change(percent: float | None) -> str:
    if percent is None:
        return ""
    return f"{percent:+.1f} %" if percent else "same"


def _value(value: float | None, state: str, unit: str) -> str:
    return state_shown(state) if value is None else shown(value, unit)
