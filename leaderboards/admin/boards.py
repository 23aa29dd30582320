"""Leaderboards; their tasks come from a repository (docs/problems.md)."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse

from leaderboards.actions import change_leaderboard
from leaderboards.admin.people import by_operator
from leaderboards.boards import delete_leaderboard
from leaderboards.models import Leaderboard, Submission
from runners.admin.base import ShownAdmin


@admin.register(Leaderboard)
class LeaderboardAdmin(ShownAdmin):
    """Changed is what `change_leaderboard` changes; `secret_seed` is shown to nobody."""

    list_display = ("name", "visibility", "deadline", "gpu_types", "deleted_at")
    list_filter = ("visibility", "deadline")
    ordering = ("name",)
    search_fields = ("name__startswith",)
    fields = (
        "name",
        "description",
        "deadline",
        "gpu_types",
        "visibility",
        "current_revision",
        "creator",
        "created_at",
        "deleted_at",
    )
    readonly_fields = (
        "name",
        "current_revision",
        "creator",
        "created_at",
        "deleted_at",
    )
    list_select_related = False
    actions = ("delete_boards",)

    def has_remove_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("leaderboards.delete_leaderboard")

    @admin.action(description="Delete the selected leaderboards", permissions=["remove"])
    def delete_boards(self, request: HttpRequest, queryset: QuerySet[Leaderboard]) -> Any:
        """Asks first, since it cannot be taken back: the submissions go with them."""
        boards = list(queryset.filter(deleted_at=None))
        if "confirmed" in request.POST:
            for board in boards:
                delete_leaderboard(board, force=True, **by_operator(request))
            messages.success(request, f"Deleted: {', '.join(board.name for board in boards)}")
            return None
        standing = Submission.objects.filter(leaderboard__in=boards, deleted_at=None)
        facts = {
            **admin.site.each_context(request),
            "title": "Delete leaderboards",
            "opts": self.opts,
            "boards": boards,
            "submissions": standing.count(),
            "action_name": "delete_boards",
        }
        return TemplateResponse(request, "leaderboards/admin/delete_boards.html", facts)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Leaderboard]:
        found = super().get_queryset(request).select_related("current_revision", "creator")
        return found.defer("current_revision__definition_json")

    def save_model(self, request: HttpRequest, obj: Leaderboard, form: Any, change: bool) -> None:
        change_leaderboard(
            Leaderboard.objects.get(pk=obj.pk),
            changes={name: form.cleaned_data[name] for name in form.changed_data},
            **by_operator(request),
        )
