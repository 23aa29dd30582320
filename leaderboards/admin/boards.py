"""Leaderboards; their tasks come from a repository (docs/problems.md)."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from leaderboards.actions import change_leaderboard
from leaderboards.api.context import request_context
from leaderboards.models import Leaderboard, PopcornUser
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

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Leaderboard]:
        found = super().get_queryset(request).select_related("current_revision", "creator")
        return found.defer("current_revision__definition_json")

    def save_model(self, request: HttpRequest, obj: Leaderboard, form: Any, change: bool) -> None:
        assert isinstance(request.user, PopcornUser)
        change_leaderboard(
            Leaderboard.objects.get(pk=obj.pk),
            actor=request.user,
            context=request_context(request),
            changes={name: form.cleaned_data[name] for name in form.changed_data},
        )
