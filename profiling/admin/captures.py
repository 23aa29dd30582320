"""Captures of all requests: what each measured, and with what."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from profiling.admin.shown import (
    PHONE_CSS,
    captures_shown,
    origin_shown,
    record_shown,
    text_shown,
)
from profiling.models import Capture
from profiling.reports.child import LAUNCHES_KEPT
from runners.admin.base import ShownAdmin
from runners.gpu.contract import FailureKind

_LARGE = (
    "kernels",
    "unavailable_counters",
    "run",
    "compilation",
    "extract",
    "notes",
    "session",
    "verdict_reasons",
)


class FailureFilter(admin.SimpleListFilter):
    title = "failure"
    parameter_name = "failure"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(kind.value, kind.value.replace("_", " ")) for kind in FailureKind]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Capture]) -> QuerySet[Capture]:
        return queryset.filter(failure_kind=self.value()) if self.value() else queryset


@admin.register(Capture)
class CaptureAdmin(ShownAdmin):
    class Media:
        css = PHONE_CSS

    list_display = (
        "id",
        "request_id",
        "spec",
        "status",
        "shown_failure",
        "verdict",
        "passed",
        "launch_count",
        "gpu_name",
        "shown_ncu",
        "shown_origin",
        "finished_at",
    )
    list_filter = ("status", "verdict", FailureFilter, "passed")
    ordering = ("-pk",)
    search_fields = ("request__pk__exact",)
    search_help_text = "the id of a request"
    fields = (
        "request",
        "shown_origin",
        "started_at",
        "finished_at",
        "shown_capture",
        "shown_unavailable",
        "shown_extract",
        "shown_run",
        "shown_compilation",
    )
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Capture]:
        found = super().get_queryset(request).select_related("request", "artifact")
        return found.defer(*_LARGE, "failure_message", "request__system")

    @admin.display(description="failure")
    def shown_failure(self, capture: Capture) -> str:
        return capture.failure_kind.replace("_", " ")

    @admin.display(description="NCU")
    def shown_ncu(self, capture: Capture) -> str:
        """Without its build, which the capture's page says."""
        return capture.ncu_version.partition(" ")[0]

    @admin.display(description="not measured")
    def shown_origin(self, capture: Capture) -> str:
        return origin_shown(capture.request)

    @admin.display(description="capture")
    def shown_capture(self, capture: Capture) -> str:
        capture.refresh_from_db(fields=[*_LARGE, "failure_message"])
        return captures_shown(capture.request, [capture], kernels=LAUNCHES_KEPT)

    @admin.display(description="unavailable counters")
    def shown_unavailable(self, capture: Capture) -> str:
        said = (f"{each['name']} ({each['state']})" for each in capture.unavailable_counters)
        return ", ".join(said)

    @admin.display(description="extract of the details")
    def shown_extract(self, capture: Capture) -> str:
        return text_shown(capture.extract)

    @admin.display(description="run of the evaluator")
    def shown_run(self, capture: Capture) -> str:
        return record_shown(capture.run)

    @admin.display(description="compilation")
    def shown_compilation(self, capture: Capture) -> str:
        return record_shown(capture.compilation)
