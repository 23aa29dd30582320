"""What lists of requests are narrowed by, each with an index behind it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from profiling.models import ProfileRequest
from runners.states import JobStatus


class StatusFilter(admin.SimpleListFilter):
    """Of the job; `refused` has none."""

    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("refused", "Refused"), *((s.value, s.label) for s in JobStatus)]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ProfileRequest]
    ) -> QuerySet[ProfileRequest]:
        if self.value() == "refused":
            return queryset.filter(job__isnull=True)
        return queryset.filter(job__status=self.value()) if self.value() else queryset


class MeasuredFilter(admin.SimpleListFilter):
    title = "measured"
    parameter_name = "measured"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "On a GPU"), ("no", "Recorded or synthetic")]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ProfileRequest]
    ) -> QuerySet[ProfileRequest]:
        if self.value() == "yes":
            return queryset.filter(result_origin="")
        return queryset.exclude(result_origin="") if self.value() == "no" else queryset


class DecisionFilter(admin.SimpleListFilter):
    title = "review"
    parameter_name = "review"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("none", "Not reviewed"), *ProfileRequest.Decision.choices]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ProfileRequest]
    ) -> QuerySet[ProfileRequest]:
        if self.value() == "none":
            return queryset.filter(review_decision="")
        return queryset.filter(review_decision=self.value()) if self.value() else queryset
