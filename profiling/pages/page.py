"""One screen per request, for operators and for its owner, from stored facts alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponse
from django.shortcuts import render

from profiling.addresses import ARCHIVE_FILES
from profiling.evidence import ABOUT_DURATIONS, details_of, opens_with, settings_words
from profiling.models import Capture, ProfileRequest
from profiling.pages.asked import compare_with_asked
from profiling.pages.charts import bar_charts, roofline
from profiling.pages.kernels import KernelTable, kernel_table, longest_launch
from profiling.pages.places import Place, with_query
from profiling.pages.sections import metric_sections
from profiling.pages.values import end_of
from profiling.reports.details import Finding, LaunchDetails, ReportDetails
from profiling.reports.summary import summarise

ROWS_SHOWN = 200
# What the page needs of a request's relations, without a query for each.
SHOWN_WITH = ("user", "job", "revision", "submission", "rerun_of")
# Left to the one capture that is looked at.
_LARGE = ("kernels", "unavailable_counters", "run", "compilation", "extract", "session")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What of a request is looked at, as its address says; anything unknown is the usual."""

    capture: int | None
    launch: int | None
    sort: str

    @classmethod
    def of(cls, http: HttpRequest) -> Choice:
        return cls(
            capture=_number(http.GET.get("capture", "")),
            launch=_number(http.GET.get("launch", "")),
            sort=http.GET.get("sort", ""),
        )


def send_request_page(
    http: HttpRequest,
    request: ProfileRequest,
    place: Place,
    *,
    base: str,
    facts: dict[str, Any] | None = None,
) -> HttpResponse:
    """A constant number of queries. `base` is the template around it, `facts` are its own."""
    choice = Choice.of(http)
    captures = list(request.captures.select_related("artifact").defer(*_LARGE))
    chosen = _chosen(captures, choice)
    related = [request.rerun_of] if request.rerun_of else []
    related += request.reruns.order_by("-created_at")[:ROWS_SHOWN]
    context = {
        **(facts or {}),
        "base": base,
        "title": f"Profile of {request.leaderboard_name} on {request.gpu}",
        "request_shown": request,
        "place_compare": place.compare(),
        "captures": [
            {
                "row": capture,
                "href": with_query(place.page(), capture=capture.benchmark_index),
                "chosen": capture is chosen,
            }
            for capture in captures
        ],
        "capture": _capture_facts(request, chosen, choice, place) if chosen else None,
        "reviews": request.reviews.select_related("reviewer")[:ROWS_SHOWN],
        "related": [
            {
                "row": each,
                "href": place.page(each),
                "compare": with_query(place.compare(), **{"with": place.name(each)}),
                "what": "first measured as" if each is request.rerun_of else "measured again as",
            }
            for each in related
        ],
        "events": request.job.events.all()[:ROWS_SHOWN] if request.job else [],
    }
    response = render(http, "profiling/review/page.html", context)
    response["Cache-Control"] = "private, no-store"
    return response


def _chosen(captures: list[Capture], choice: Choice) -> Capture | None:
    """The one that was asked for, else the first that was captured, else the first."""
    by_index = {capture.benchmark_index: capture for capture in captures}
    if choice.capture in by_index:
        return by_index[choice.capture]
    captured = (each for each in captures if each.status == Capture.Status.CAPTURED)
    return next(captured, captures[0] if captures else None)


def _capture_facts(
    request: ProfileRequest, listed: Capture, choice: Choice, place: Place
) -> dict[str, Any]:
    capture = Capture.objects.select_related("artifact", "details").get(pk=listed.pk)
    launch_index = choice.launch
    if launch_index is None or launch_index >= len(capture.kernels):
        launch_index = longest_launch(capture.kernels)
    details = details_of(capture, launch=launch_index)
    index = capture.benchmark_index
    return {
        "row": capture,
        "notes": _notes(capture),
        "compared": compare_with_asked(request, capture),
        "kernels": _kernels(capture, choice, place, launch_index),
        "launch": _launch_facts(details, launch_index) if details else None,
        "opens_with": opens_with(capture),
        "settings_words": settings_words(capture),
        "files": [(file, place.file(index, name)) for name, file in ARCHIVE_FILES.items()],
        "archive": place.archive(index),
        "logs": _logs(capture),
    }


def _notes(capture: Capture) -> list[dict[str, str]]:
    """Those that are no reason of the verdict already."""
    told = {reason["code"] for reason in capture.verdict_reasons}
    return [note for note in capture.notes if note["kind"] not in told]


def _kernels(capture: Capture, choice: Choice, place: Place, launch: int) -> KernelTable | None:
    if not capture.kernels:
        return None

    here = place.page()  # signed once, for hundreds of links

    def address(**query: object) -> str:
        said = {"capture": capture.benchmark_index, "launch": launch} | query
        return with_query(here, **said)

    return kernel_table(
        capture.kernels,
        launch_count=capture.launch_count or 0,
        sort=choice.sort,
        chosen=launch,
        address=address,
    )


def _launch_facts(details: ReportDetails, index: int) -> dict[str, Any] | None:
    launch = next((each for each in details.launches if each.index == index), None)
    if launch is None:
        return None
    return {
        "row": launch,
        "summary": summarise(replace(details, launches=(launch,))).launches[0],
        "about_durations": ABOUT_DURATIONS,
        "charts": bar_charts(launch),
        "roofline": roofline(launch),
        "findings": sorted(launch.findings, key=_rank),
        "has_samples": any(spot.samples is not None for spot in launch.hot_spots),
        "has_source": any(spot.source or spot.sass for spot in launch.hot_spots),
        "hot_spots": _hot_spots(launch),
        "source_problem": details.source_problem,
        "sections": metric_sections(details, launch),
    }


def _rank(finding: Finding) -> tuple[bool, float]:
    """Errors first, then by the speed-up that the rule estimates."""
    return finding.kind != "ERR", -(finding.speedup or 0.0)


def _hot_spots(launch: LaunchDetails) -> list[dict[str, Any]]:
    total = sum(spot.samples or 0 for spot in launch.hot_spots)
    return [
        {
            "row": spot,
            "share": f"{(spot.samples or 0) / total:.0%}" if total else "",
            "stalls": ", ".join(
                f"{reason.replace('_', ' ')} {samples:,}" for reason, samples in spot.stalls.items()
            ),
        }
        for spot in launch.hot_spots
    ]


def _logs(capture: Capture) -> list[tuple[str, str]]:
    """What was printed, by whom; hostile text."""
    run, compilation = capture.run or {}, capture.compilation or {}
    said = [
        ("Compiler, standard output", compilation.get("stdout")),
        ("Compiler, standard error", compilation.get("stderr")),
        ("Program, standard output", run.get("stdout")),
        ("Program, standard error", run.get("stderr")),
        ("Extract of ncu's details", capture.extract),
    ]
    return [(title, end_of(text)) for title, text in said if text]


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 10 else None
