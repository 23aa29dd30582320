"""People, and the digests of what they identify themselves with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path

from leaderboards import audit
from leaderboards.admin.access import access_page
from leaderboards.api.context import request_context
from leaderboards.audit import By
from leaderboards.models import ClientId, Identity, PopcornUser
from leaderboards.verbs import Verb
from runners.admin.base import LISTS_CSS, BoundedPaginator, ShownInline

if TYPE_CHECKING:  # generic in the stubs alone
    _UserAdmin = UserAdmin[PopcornUser]
else:
    _UserAdmin = UserAdmin


def by_operator(request: HttpRequest) -> By:
    """Who does what this request asks for, as the arguments of an action."""
    assert isinstance(request.user, PopcornUser)
    return By(actor=request.user, context=request_context(request))


def people_called(term: str) -> list[int]:
    """Keys of the people whose name or public id is `term`; both are unique, so by an index."""
    named = PopcornUser.objects.filter(username=term).values_list("pk", flat=True)
    return list(named.union(PopcornUser.objects.filter(user_id=term).values_list("pk", flat=True)))


class IdentityInline(ShownInline):
    model = Identity
    fields = ("provider", "provider_id", "created_at")


class ClientIdInline(ShownInline):
    model = ClientId
    fields = ("kind", "shown_digest", "issued_at", "activated_at", "last_used_at", "revoked_at")
    readonly_fields = ("shown_digest",)

    @admin.display(description="digest")
    def shown_digest(self, client_id: ClientId) -> str:
        """Enough to tell ids apart, and to find one whose digest is known."""
        return f"{client_id.digest[:8]}…"


@admin.register(PopcornUser)
class PopcornUserAdmin(_UserAdmin):
    class Media:
        css = LISTS_CSS

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_display = ("username", "display_name", "user_id", "is_staff", "banned_at", "date_joined")
    list_filter = ("is_staff", "is_superuser", "is_active")
    ordering = ("username",)
    search_fields = ("username__startswith", "user_id__startswith")
    search_help_text = "the beginning of a name or of a public id"
    inlines = (IdentityInline, ClientIdInline)
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("display_name", "user_id", "email", "banned_at", "ban_reason")}),
        (
            "Permissions",
            {"fields": ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")},
        ),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("user_id", "banned_at", "ban_reason", "last_login", "date_joined")
    change_form_template = "leaderboards/admin/person.html"

    def get_urls(self) -> list[URLPattern]:
        access = path(
            "<int:key>/access/",
            self.admin_site.admin_view(self.access),
            name="leaderboards_popcornuser_access",
        )
        return [access, *super().get_urls()]

    def access(self, request: HttpRequest, key: int) -> HttpResponse:
        user = get_object_or_404(PopcornUser, pk=key)
        if not self.has_change_permission(request, user):
            raise PermissionDenied
        return access_page(request, user)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return self.inlines if obj else ()

    def log_addition(self, request: HttpRequest, obj: PopcornUser, message: Any) -> Any:
        self._record(Verb.USER_REGISTERED, request, obj, message)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: PopcornUser, message: Any) -> Any:
        """Called for a new password too, which has a page of its own."""
        self._record(Verb.USER_CHANGED, request, obj, message)
        return super().log_change(request, obj, message)

    def _record(self, verb: Verb, request: HttpRequest, user: PopcornUser, message: Any) -> None:
        assert isinstance(request.user, PopcornUser)
        context = request_context(request)
        audit.record(
            verb, user, actor=request.user, context=context, name=user.username, how=message
        )
