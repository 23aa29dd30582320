"""The versions of tasks, and what differs between two of them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from leaderboards.models import TaskRevision
from leaderboards.revision_diff import show_differences
from runners.admin.base import ShownAdmin


@admin.register(TaskRevision)
class TaskRevisionAdmin(ShownAdmin):
    list_display = ("sha256", "leaderboard", "commit", "repository", "created_at")
    list_filter = ("leaderboard", "created_at")
    list_select_related = ("leaderboard",)
    ordering = ("-pk",)
    search_fields = ("sha256__startswith", "commit__startswith")
    fields = (
        "leaderboard",
        "sha256",
        "repository",
        "commit",
        "directory",
        "created_at",
        "changes",
        "definition_json",
    )
    readonly_fields = ("changes",)
    actions = ("compare",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[TaskRevision]:
        return super().get_queryset(request).defer("definition_json")

    @admin.display(description="changes since the one before")
    def changes(self, revision: TaskRevision) -> SafeString | str:
        before = TaskRevision.objects.filter(leaderboard=revision.leaderboard, pk__lt=revision.pk)
        old = before.order_by("-pk").first()
        return format_html("<pre>{}</pre>", show_differences(old, revision)) if old else "the first"

    @admin.action(description="Compare the two selected revisions", permissions=["view"])
    def compare(self, request: HttpRequest, queryset: QuerySet[TaskRevision]) -> Any:
        """The older one first."""
        if queryset.count() != 2:
            messages.error(request, "Select two revisions.")
            return None
        old, new = queryset.order_by("pk")
        return self._comparison(request, old, new)

    def _comparison(
        self, request: HttpRequest, old: TaskRevision, new: TaskRevision
    ) -> HttpResponse:
        facts = {
            **admin.site.each_context(request),
            "title": "Two revisions",
            "opts": self.opts,
            "old": old,
            "new": new,
            "differences": show_differences(old, new),
        }
        return TemplateResponse(request, "leaderboards/admin/comparison.html", facts)
