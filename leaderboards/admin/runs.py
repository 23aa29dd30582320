"""Stages of submissions as they ended; what they printed is read on the page of one alone."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from leaderboards.admin.people import people_called
from leaderboards.models import Run
from runners.admin.base import GpuFilter, ShownAdmin

LARGE = ("run", "compilation", "system", "failure_message")


@admin.register(Run)
class RunAdmin(ShownAdmin):
    list_display = (
        "id",
        "submission_id",
        "user",
        "leaderboard",
        "gpu",
        "mode",
        "secret",
        "passed",
        "score",
        "finished_at",
    )
    list_filter = ("leaderboard", GpuFilter, "passed", "secret")
    list_select_related = ("user", "leaderboard")
    ordering = ("-pk",)
    search_fields = ("submission_id",)
    search_help_text = "the number of a submission, or a person's name or id"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        found = super().get_queryset(request).select_related("user", "leaderboard")
        of_one = request.resolver_match and "object_id" in request.resolver_match.kwargs
        return found if of_one else found.defer(*LARGE)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Run], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        if term.isascii() and term.isdigit() and len(term) < 19:
            return queryset.filter(submission_id=int(term)), False
        return queryset.filter(user__in=people_called(term)), False
