"""What people sent; the code itself is read on the page of one submission alone."""

from __future__ import annotations

import re
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from leaderboards.admin.people import people_called
from leaderboards.models import Submission
from runners.admin.base import GpuFilter, ShownAdmin

SHA256 = re.compile(r"[0-9a-f]{64}")


@admin.register(Submission)
class SubmissionAdmin(ShownAdmin):
    list_display = (
        "id",
        "user",
        "leaderboard",
        "gpu",
        "mode",
        "file_name",
        "created_at",
        "deleted_at",
    )
    list_filter = ("leaderboard", "mode", GpuFilter, "created_at")
    list_select_related = ("user", "leaderboard")
    ordering = ("-pk",)
    search_fields = ("pk",)
    search_help_text = "the number of a submission, a person's name or id, or a source's SHA-256"
    fields = (
        "id",
        "user",
        "leaderboard",
        "revision",
        "gpu",
        "mode",
        "file_name",
        "source",
        "shown_source",
        "created_at",
        "verdict",
        "deleted_at",
    )
    readonly_fields = ("shown_source",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Submission]:
        return super().get_queryset(request).select_related("user", "leaderboard")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Submission], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        if SHA256.fullmatch(term):
            return queryset.filter(source_id=term), False
        wanted = Q(user__in=people_called(term))
        if term.isascii() and term.isdigit() and len(term) < 19:
            wanted |= Q(pk=int(term))
        return queryset.filter(wanted), False

    @admin.display(description="code")
    def shown_source(self, submission: Submission) -> str:
        return submission.source.text if submission.source.purged_at is None else "(deleted)"
