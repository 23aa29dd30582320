"""What an operator of a competition sets: invites, limits, and whether submissions are taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from leaderboards.admin.people import by_operator, people_called
from leaderboards.invites import CODES_AT_ONCE, create_invites, revoke_invite
from leaderboards.limits import remove_rate_limit, set_rate_limit, switch_acceptance
from leaderboards.models import (
    AcceptanceSwitch,
    Invite,
    Leaderboard,
    ModeCategory,
    RateLimit,
)
from runners.admin.base import ShownAdmin
from runners.exceptions import ServiceError

if TYPE_CHECKING:  # generic in the stubs alone
    _InviteForm = forms.ModelForm[Invite]
else:
    _InviteForm = forms.ModelForm


class InvitesForm(_InviteForm):
    """Several codes at once, which all open the same leaderboards."""

    count = forms.IntegerField(min_value=1, max_value=CODES_AT_ONCE, initial=1)
    leaderboards = forms.ModelMultipleChoiceField(
        Leaderboard.objects.existing().order_by("name").only("name")
    )

    class Meta:
        model = Invite
        fields = ("leaderboards",)


@admin.register(Invite)
class InviteAdmin(ShownAdmin):
    """Made and revoked; the codes are shown, since operators hand them out."""

    list_display = ("code", "opens", "claimed_by", "claimed_at", "created_at", "revoked_at")
    list_filter = ("created_at", "leaderboards")
    list_select_related = ("claimed_by",)
    ordering = ("-pk",)
    search_fields = ("code",)
    search_help_text = "a code, or the name or id of who claimed it"
    fields = ("code", "opens", "claimed_by", "claimed_at", "created_at", "revoked_at")
    readonly_fields = ("opens",)
    actions = ("revoke",)

    @admin.display(description="leaderboards")
    def opens(self, invite: Invite) -> str:
        return ", ".join(board.name for board in invite.leaderboards.all())

    def get_queryset(self, request: HttpRequest) -> QuerySet[Invite]:
        return super().get_queryset(request).prefetch_related("leaderboards")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Invite], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        of_people = queryset.filter(claimed_by__in=people_called(term))
        return queryset.filter(code=term) | of_people, False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_add_permission(self, request)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("leaderboards.change_invite")

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        return super().get_form(request, obj, change, **kwargs) if obj else InvitesForm

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields if obj else ("leaderboards", "count")

    def save_model(self, request: HttpRequest, obj: Invite, form: Any, change: bool) -> None:
        """The row that the admin goes on with is the first of those made."""
        wanted = form.cleaned_data
        made = create_invites(wanted["leaderboards"], wanted["count"], **by_operator(request))
        obj.pk, obj.code, obj.created_at = made[0].pk, made[0].code, made[0].created_at
        obj._state.adding = False

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Done by `create_invites`."""

    @admin.action(description="Revoke the selected invites", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[Invite]) -> None:
        for invite in queryset:
            try:
                revoke_invite(invite.code, **by_operator(request))
            except ServiceError as error:
                messages.error(request, f"{invite.code}: {error}")


@admin.register(RateLimit)
class RateLimitAdmin(ShownAdmin):
    list_display = ("leaderboard", "mode_category", "max_submissions_per_hour")
    list_display_links = ("mode_category",)
    list_select_related = ("leaderboard",)
    ordering = ("leaderboard", "mode_category")
    actions = ("remove",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("leaderboard", "mode_category") if obj else ()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_add_permission(self, request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    def has_remove_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("leaderboards.delete_ratelimit")

    def save_model(self, request: HttpRequest, obj: RateLimit, form: Any, change: bool) -> None:
        limit = set_rate_limit(
            obj.leaderboard,
            ModeCategory(obj.mode_category),
            obj.max_submissions_per_hour,
            **by_operator(request),
        )
        obj.pk = limit.pk

    @admin.action(description="Remove the selected limits", permissions=["remove"])
    def remove(self, request: HttpRequest, queryset: QuerySet[RateLimit]) -> None:
        for limit in queryset:
            category = ModeCategory(limit.mode_category)
            remove_rate_limit(limit.leaderboard, category, **by_operator(request))


@admin.register(AcceptanceSwitch)
class AcceptanceSwitchAdmin(ShownAdmin):
    """The newest row counts; adding one switches."""

    list_display = ("changed_at", "accepts", "changed_by")
    ordering = ("-pk",)
    fields = ("accepts",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_add_permission(self, request)

    def save_model(
        self, request: HttpRequest, obj: AcceptanceSwitch, form: Any, change: bool
    ) -> None:
        obj.pk = switch_acceptance(obj.accepts, **by_operator(request)).pk
