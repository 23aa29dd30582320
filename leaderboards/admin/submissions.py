"""What people sent; the code itself is read on the page of one submission alone."""

from __future__ import annotations

import re
from typing import Any

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse

from leaderboards.admin.people import by_operator, people_called
from leaderboards.deletion import delete_submission
from leaderboards.judging import disqualify, reinstate
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
        "verdict",
        "deleted_at",
    )
    list_filter = ("leaderboard", "mode", GpuFilter, "verdict", "created_at")
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
    actions = ("disqualify", "reinstate", "delete_submissions")

    def has_judge_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("leaderboards.change_submission")

    def has_remove_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("leaderboards.delete_submission")

    @admin.action(description="Take out of the ranking as hacked", permissions=["judge"])
    def disqualify(self, request: HttpRequest, queryset: QuerySet[Submission]) -> None:
        for submission in queryset:
            disqualify(submission, **by_operator(request))

    @admin.action(description="Put back into the ranking", permissions=["judge"])
    def reinstate(self, request: HttpRequest, queryset: QuerySet[Submission]) -> None:
        for submission in queryset:
            reinstate(submission, **by_operator(request))

    @admin.action(description="Delete the selected submissions", permissions=["remove"])
    def delete_submissions(self, request: HttpRequest, queryset: QuerySet[Submission]) -> Any:
        """Asks first, since it cannot be taken back."""
        submissions = list(queryset.filter(deleted_at=None))
        if "confirmed" in request.POST:
            for submission in submissions:
                delete_submission(submission, **by_operator(request))
            messages.success(request, f"Deleted: {len(submissions)}")
            return None
        facts = {
            **admin.site.each_context(request),
            "title": "Delete submissions",
            "opts": self.opts,
            "submissions": submissions,
        }
        return TemplateResponse(request, "leaderboards/admin/delete_submissions.html", facts)

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
