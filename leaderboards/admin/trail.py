"""The audit trail and the floods: to be read only, whoever asks."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from leaderboards.admin.people import people_called
from leaderboards.models import AuditEvent, FloodRefusal
from runners.admin.base import ShownAdmin


@admin.register(AuditEvent)
class AuditEventAdmin(ShownAdmin):
    list_display = (
        "created_at",
        "verb",
        "actor_label",
        "subject_kind",
        "subject_id",
        "address",
        "request_id",
    )
    list_filter = ("created_at",)
    ordering = ("-created_at",)
    search_fields = ("pk",)
    search_help_text = "the id of what was done to, or the name or id of who did it"

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEvent]:
        return super().get_queryset(request).select_related("actor").defer("data")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEvent], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        # The kinds in front, since the index begins with them.
        kinds = [str(model._meta.model_name) for model in apps.get_models()]
        about = Q(subject_kind__in=kinds, subject_id=term)
        return queryset.filter(about | Q(actor__in=people_called(term))), False


@admin.register(FloodRefusal)
class FloodRefusalAdmin(ShownAdmin):
    list_display = ("minute", "identity", "route", "count", "last_at")
    list_filter = ("minute",)
    ordering = ("-pk",)
    search_fields = ("identity__exact",)
    search_help_text = "user:<public id> or address:<address>"
