"""Requests: the list, one request with all that belongs to it, and what operators can do."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.options import ActionLocation
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html_join

from leaderboards.admin.people import people_called
from leaderboards.api.context import request_context
from leaderboards.audit import RequestContext
from leaderboards.models import AuditEvent, PopcornUser
from profiling import actions
from profiling.admin.filters import DecisionFilter, MeasuredFilter, StatusFilter
from profiling.admin.review import comparison_page, named_request, review_page
from profiling.admin.shown import PHONE_CSS, captures_shown, json_shown, origin_shown
from profiling.models import ProfileRequest
from profiling.pages.page import SHOWN_WITH
from profiling.pages.places import with_query
from runners.admin.base import GpuFilter, ShownAdmin, link
from runners.exceptions import ServiceError

SHA256 = re.compile(r"[0-9a-f]{64}")
ROWS_AT_ONCE = 200
TRAIL_SHOWN = 200
CANCEL_REASON = "cancelled by an operator"
_EVERYWHERE = [ActionLocation.CHANGE_LIST, ActionLocation.CHANGE_FORM]
Do = Callable[[ProfileRequest, PopcornUser, RequestContext], str]


@admin.register(ProfileRequest)
class ProfileRequestAdmin(ShownAdmin):
    class Media:
        css = PHONE_CSS

    list_display = (
        "created_at",
        "shown_review",
        "leaderboard_name",
        "gpu",
        "user",
        "shown_status",
        "verdict",
        "shown_origin",
        "origin",
        "id",
    )
    list_filter = (
        StatusFilter,
        "verdict",
        DecisionFilter,
        MeasuredFilter,
        GpuFilter,
        "origin",
        "leaderboard",
        "created_at",
    )
    ordering = ("-created_at",)
    change_form_template = "profiling/admin/request_form.html"
    search_fields = ("pk",)
    search_help_text = (
        "the id of a request or job, a person's name or id, or the SHA-256 of a source"
    )
    actions = ("cancel_selected", "rerun_selected", "compare_selected")
    fieldsets = (
        (
            None,
            {
                "fields": (
                    ("id", "created_at", "user"),
                    ("shown_status", "verdict", "review_decision", "shown_origin"),
                    ("rerun_of", "shown_reruns", "deleted_at"),
                )
            },
        ),
        ("Refused", {"fields": ("refusal_status", "refusal_code", "refusal_reason")}),
        ("Captures", {"fields": ("shown_captures", "shown_system")}),
        ("Job", {"fields": ("shown_job", "shown_failure", "shown_events")}),
        (
            "Asked for",
            {
                "fields": (
                    ("leaderboard_name", "leaderboard", "revision"),
                    ("gpu", "ncu_version_wanted", "seed"),
                    ("file_name", "submission", "source_sha256"),
                    ("benchmark_index", "ncu_launch_count"),
                    ("ncu_kernel_name", "ncu_kernel_name_base"),
                    "shown_specs",
                    "config_sha256",
                )
            },
        ),
        ("Audit trail", {"fields": ("shown_trail",)}),
        ("Came from", {"fields": (("origin", "request_id"), ("address", "client_version"))}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[ProfileRequest]:
        found = super().get_queryset(request).select_related("user", "job", "revision")
        return found.defer(
            "revision__definition_json", "system", "benchmark_specs", "job__failure_message"
        )

    def get_fieldsets(self, request: HttpRequest, obj: ProfileRequest | None = None) -> Any:
        left_out = {"Captures", "Job"} if obj and obj.job_id is None else {"Refused"}
        return [each for each in self.fieldsets if each[0] not in left_out]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[ProfileRequest], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """By what has an index: one of the keys, and never by a part of a text (FR-36)."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if SHA256.fullmatch(term):
            return queryset.filter(submission__source=term), False
        try:
            key = UUID(term)
        except ValueError:
            return queryset.filter(user__in=people_called(term)), False
        return queryset.filter(Q(pk=key) | Q(job=key)), False

    # --- The page of one request (pages/page.py) ---
    def get_urls(self) -> list[URLPattern]:
        pages = {"review": self.review_view, "compare": self.compare_view}
        routes = [
            path(
                f"<uuid:pk>/{name}/",
                self.admin_site.admin_view(view),
                name=f"profiling_profilerequest_{name}",
            )
            for name, view in pages.items()
        ]
        return [*routes, *super().get_urls()]

    def review_view(self, http: HttpRequest, pk: UUID) -> HttpResponse:
        request = self._shown(http, pk)
        return review_page(http, request, may_act=self.has_operate_permission(http))

    def compare_view(self, http: HttpRequest, pk: UUID) -> HttpResponse:
        request, other = self._shown(http, pk), named_request(http.GET.get("with", ""))
        if other is None:
            self.message_user(http, "There is no such request.", messages.WARNING)
            return redirect("admin:profiling_profilerequest_review", pk)
        return comparison_page(http, request, other)

    def _shown(self, http: HttpRequest, pk: UUID) -> ProfileRequest:
        if not self.has_view_permission(http):
            raise PermissionDenied
        shown = ProfileRequest.objects.select_related(*SHOWN_WITH)
        return get_object_or_404(shown.defer("revision__definition_json", "system"), pk=pk)

    # --- Actions: each row by the function that the API calls, each refusal told ---
    def has_operate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("profiling.change_profilerequest")

    @admin.action(
        description="Cancel the selected requests", permissions=["operate"], location=_EVERYWHERE
    )
    def cancel_selected(self, http: HttpRequest, queryset: QuerySet[ProfileRequest]) -> None:
        def cancel(request: ProfileRequest, actor: PopcornUser, context: RequestContext) -> str:
            actions.cancel_request(request, actor=actor, reason=CANCEL_REASON, context=context)
            return "cancelled"

        self._each(http, queryset, cancel)

    @admin.action(
        description="Measure the selected requests again",
        permissions=["operate"],
        location=_EVERYWHERE,
    )
    def rerun_selected(self, http: HttpRequest, queryset: QuerySet[ProfileRequest]) -> None:
        def rerun(request: ProfileRequest, actor: PopcornUser, context: RequestContext) -> str:
            again = actions.rerun_request(
                request, actor=actor, origin=ProfileRequest.Origin.ADMIN, context=context
            )
            return f"runs again as {again.pk}"

        self._each(http, queryset, rerun)

    @admin.action(description="Compare the two selected requests")
    def compare_selected(
        self, http: HttpRequest, queryset: QuerySet[ProfileRequest]
    ) -> HttpResponse | None:
        """The older one is the base."""
        selected = list(queryset.order_by("created_at")[:3])
        if len(selected) != 2:
            self.message_user(http, "Select two requests to compare.", messages.WARNING)
            return None
        base, other = selected
        place = reverse("admin:profiling_profilerequest_compare", args=[base.pk])
        return redirect(with_query(place, **{"with": other.pk}))

    def _each(self, http: HttpRequest, queryset: QuerySet[ProfileRequest], do: Do) -> None:
        assert isinstance(http.user, PopcornUser)
        selected = list(queryset[: ROWS_AT_ONCE + 1])
        if len(selected) > ROWS_AT_ONCE:
            self.message_user(http, f"Select {ROWS_AT_ONCE} at most.", messages.ERROR)
            return
        context = request_context(http)
        for request in selected:
            try:
                done = do(request, http.user, context)
            except ServiceError as error:
                self.message_user(http, f"{request.pk}: {error}", messages.WARNING)
            else:
                self.message_user(http, f"{request.pk}: {done}", messages.SUCCESS)

    # --- Columns and fields ---
    @admin.display(description="status")
    def shown_status(self, request: ProfileRequest) -> str:
        return request.status

    @admin.display(description="review")
    def shown_review(self, request: ProfileRequest) -> str:
        page = reverse("admin:profiling_profilerequest_review", args=[request.pk])
        return link(page, request.review_decision or "open")

    @admin.display(description="not measured")
    def shown_origin(self, request: ProfileRequest) -> str:
        return origin_shown(request)

    @admin.display(description="runs again as")
    def shown_reruns(self, request: ProfileRequest) -> str:
        again = request.reruns.order_by("created_at").values_list("pk", flat=True)[:TRAIL_SHOWN]
        name = "admin:profiling_profilerequest_change"
        return format_html_join(", ", "{}", ((link(reverse(name, args=[pk]), pk),) for pk in again))

    @admin.display(description="benchmarks")
    def shown_specs(self, request: ProfileRequest) -> str:
        return json_shown(request.benchmark_specs)

    @admin.display(description="captures")
    def shown_captures(self, request: ProfileRequest) -> str:
        captures = request.captures.select_related("artifact")
        return captures_shown(request, list(captures.defer("run", "compilation", "extract")))

    @admin.display(description="machine, as it describes itself")
    def shown_system(self, request: ProfileRequest) -> str:
        return json_shown(request.system)

    @admin.display(description="job")
    def shown_job(self, request: ProfileRequest) -> str:
        return link(reverse("admin:runners_job_change", args=[request.job_id]), request.job_id)

    @admin.display(description="failure")
    def shown_failure(self, request: ProfileRequest) -> str:
        job = request.job
        return f"{job.failure_kind}: {job.failure_message}" if job and job.failure_kind else ""

    @admin.display(description="events")
    def shown_events(self, request: ProfileRequest) -> str:
        assert request.job is not None
        return render_to_string(
            "profiling/admin/events.html", {"events": request.job.events.all()[:TRAIL_SHOWN]}
        )

    @admin.display(description="audit trail")
    def shown_trail(self, request: ProfileRequest) -> str:
        rows = AuditEvent.objects.filter(
            subject_kind=request._meta.model_name, subject_id=str(request.pk)
        )
        return render_to_string(
            "profiling/admin/trail.html", {"rows": rows.order_by("pk")[:TRAIL_SHOWN]}
        )

    readonly_fields = (
        "shown_status",
        "shown_origin",
        "shown_reruns",
        "shown_specs",
        "shown_captures",
        "shown_system",
        "shown_job",
        "shown_failure",
        "shown_events",
        "shown_trail",
    )
