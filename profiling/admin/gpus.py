"""What belongs to `runners`, but needs the apps above to be shown in full or to be audited."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import F, OuterRef, QuerySet, Subquery, UUIDField
from django.http import HttpRequest
from django.urls import reverse

from leaderboards.api.context import request_context
from leaderboards.models import PopcornUser
from profiling.actions import resume_gpu
from profiling.models import Capture
from runners.admin.base import GpuFilter, ShownAdmin, link
from runners.exceptions import ServiceError
from runners.models import Artifact, GpuPause


@admin.register(GpuPause)
class GpuPauseAdmin(ShownAdmin):
    list_display = ("gpu", "kind", "reason", "paused_at", "paused_by", "resumed_at", "resumed_by")
    list_filter = (GpuFilter, ("resumed_at", admin.EmptyFieldListFilter))
    ordering = (F("resumed_at").desc(nulls_first=True), "-pk")
    actions = ("resume",)

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("runners.change_gpupause")

    @admin.action(description="Start jobs on these GPUs again", permissions=["operate"])
    def resume(self, http: HttpRequest, queryset: QuerySet[GpuPause]) -> None:
        assert isinstance(http.user, PopcornUser)
        for pause in queryset:
            try:
                resume_gpu(pause, actor=http.user, context=request_context(http))
            except ServiceError as error:
                self.message_user(http, str(error), messages.WARNING)
            else:
                self.message_user(http, f"{pause.gpu} takes jobs again", messages.SUCCESS)


@admin.register(Artifact)
class ArtifactAdmin(ShownAdmin):
    list_display = (
        "id",
        "job_id",
        "name",
        "attempt",
        "size",
        "created_at",
        "purged_at",
        "download",
    )
    list_filter = ("created_at", ("purged_at", admin.EmptyFieldListFilter))
    ordering = ("-pk",)
    search_fields = ("job__pk__exact",)
    search_help_text = "the id of a job"
    # Not `file`: its address is the storage's own, which nobody may know or need.
    fields = (
        "job",
        "name",
        "attempt",
        "size",
        "sha256",
        "content_type",
        "created_at",
        "purged_at",
        "download",
    )
    readonly_fields = ("download",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        capture = Capture.objects.filter(artifact=OuterRef("pk"))
        found: QuerySet[Any] = (
            super()
            .get_queryset(request)
            .annotate(
                of_request=Subquery(capture.values("request")[:1], output_field=UUIDField()),
                of_benchmark=Subquery(capture.values("benchmark_index")[:1]),
            )
        )
        return found

    @admin.display(description="download")
    def download(self, artifact: Any) -> str:
        """Nothing for the file of an attempt whose result was not kept."""
        if artifact.of_request is None or artifact.purged_at is not None:
            return ""
        place = (artifact.of_request, artifact.of_benchmark)
        return link(reverse("capture-archive", args=place), "archive")
