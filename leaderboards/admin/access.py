"""One page of a person for what an operator does about access: activate and revoke ids, ban."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from leaderboards.api.context import request_context
from leaderboards.audit import By
from leaderboards.identity.bans import ban_user, unban_user
from leaderboards.identity.client_ids import (
    activate_cli_id,
    find_waiting,
    revoke_client_id,
    valid_ids,
)
from leaderboards.models import PopcornUser
from runners.exceptions import ServiceError


def access_page(request: HttpRequest, user: PopcornUser) -> HttpResponse:
    """GET shows, POST does the deed that its button names. The caller has checked permissions."""
    if request.method == "POST":
        _do(request, user)
        return redirect(request.path)
    facts = {
        **admin.site.each_context(request),
        "title": "Ids and bans",
        "person": user,
        "ids": valid_ids(user),
        "opts": PopcornUser._meta,
    }
    return TemplateResponse(request, "leaderboards/admin/access.html", facts)


def _do(request: HttpRequest, user: PopcornUser) -> None:
    deed = _DEEDS.get(request.POST.get("deed", ""))
    if deed is None:
        messages.error(request, "Nothing was asked for.")
        return
    assert isinstance(request.user, PopcornUser)
    by: By = {"actor": request.user, "context": request_context(request)}
    try:
        messages.success(request, deed(request, user, by))
    except ServiceError as error:
        messages.error(request, str(error))


def _activate(request: HttpRequest, user: PopcornUser, by: By) -> str:
    waiting = find_waiting(request.POST.get("typed", ""))
    activate_cli_id(waiting, user=user, **by)
    address = waiting.issued_to_address or "an unknown address"
    return f"The id that {address} asked for is active."


def _revoke(request: HttpRequest, user: PopcornUser, by: By) -> str:
    digest = request.POST.get("digest", "")
    for client_id in valid_ids(user).filter(digest=digest):
        revoke_client_id(client_id, **by)
    return "The id is revoked."


def _ban(request: HttpRequest, user: PopcornUser, by: By) -> str:
    ban_user(user, reason=request.POST.get("reason", ""), **by)
    return "Banned from the next request on; what runs already is left to end."


def _unban(request: HttpRequest, user: PopcornUser, by: By) -> str:
    unban_user(user, reason=request.POST.get("reason", ""), **by)
    return "Not banned any more."


_DEEDS: dict[str, Callable[[HttpRequest, PopcornUser, By], str]] = {
    "activate": _activate,
    "revoke": _revoke,
    "ban": _ban,
    "unban": _unban,
}
