"""Jobs with their events and files. What can be done to them is done to their requests."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from runners.admin.base import GpuFilter, ShownAdmin, ShownInline
from runners.models import Artifact, Job, JobEvent


class EventInline(ShownInline):
    model = JobEvent
    fields = ("created_at", "from_status", "to_status", "attempt", "actor_label", "reason")


class ArtifactInline(ShownInline):
    model = Artifact
    # Not `file`: its address is the storage's own, which nobody may know or need.
    fields = ("name", "attempt", "size", "sha256", "content_type", "created_at", "purged_at")


@admin.register(Job)
class JobAdmin(ShownAdmin):
    list_display = (
        "id",
        "kind",
        "gpu",
        "runner",
        "status",
        "phase",
        "attempt",
        "owner_key",
        "failure_kind",
        "created_at",
    )
    list_filter = ("status", GpuFilter, "stop_due", "created_at")
    ordering = ("-created_at",)
    search_fields = ("pk__exact",)
    search_help_text = "the id of a job"
    inlines = (EventInline, ArtifactInline)
    fieldsets = (
        (None, {"fields": ("id", "kind", "gpu", "runner", "owner_key", "status", "phase")}),
        ("How it ended", {"fields": ("failure_kind", "failure_message", "stop_due")}),
        ("Attempt", {"fields": ("attempt", "external_id", "lease_owner", "lease_until")}),
        (
            "Times",
            {
                "fields": (
                    "created_at",
                    "queued_at",
                    "not_before",
                    "starting_at",
                    "running_at",
                    "finished_at",
                )
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        return super().get_queryset(request).defer("failure_message")
