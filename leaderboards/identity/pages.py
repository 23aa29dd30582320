"""The activation page: sign in, type the id that the CLI holds, see whose it may be, confirm.

The id comes from the person's keyboard alone, never from an address (wire-contract.md, 20).
"""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_POST

from leaderboards.api.client_address import address_key, client_address
from leaderboards.api.context import request_context
from leaderboards.api.flood import limit_flood
from leaderboards.identity.client_ids import (
    activate_cli_id,
    find_waiting,
    revoke_client_id,
    valid_ids,
)
from leaderboards.identity.cookies import forget_person, person_of, remember_browser
from leaderboards.identity.exceptions import NotSignedIn, UnknownClientId
from leaderboards.identity.login import begin_sign_in
from leaderboards.identity.providers import offered_providers, provider_called
from leaderboards.identity.rendering import send_page, tells_errors
from leaderboards.models import ClientId, PopcornUser

# Carries the checked id to its confirmation, so that the page itself does not hold it.
_CHECKED_SALT = "leaderboards.identity.checked"
CHECKED_LIFETIME_S = 10 * 60


@require_GET
@tells_errors
def show(request: HttpRequest) -> HttpResponse:
    try:
        user = person_of(request)
    except NotSignedIn:
        return send_page(request, "sign_in.html", {"providers": offered_providers()})
    return _show_ids(request, user)


def _show_ids(
    request: HttpRequest, user: PopcornUser, problem: UnknownClientId | None = None
) -> HttpResponse:
    facts = {"person": user, "ids": valid_ids(user), "problem": problem}
    return send_page(request, "ids.html", facts, problem.http_status if problem else 200)


@require_POST
@tells_errors
def begin(request: HttpRequest, provider: str) -> HttpResponse:
    """Off to the provider. A POST, so that neither a link nor a preview of one begins it."""
    limit_flood(request, route="sign-in", rate=settings.AUTH_RATE, user=None)
    begun = begin_sign_in(provider_called(provider))
    response = HttpResponse(status=303, headers={"Location": begun.url})
    remember_browser(response, begun.browser)
    response["Cache-Control"] = "no-store"
    return response


@require_POST
@tells_errors
def check(request: HttpRequest) -> HttpResponse:
    """Show where the typed id comes from, before it becomes somebody's."""
    user = person_of(request)
    limit_flood(request, route="activation", rate=settings.ACTIVATION_RATE, user=user)
    try:
        waiting = find_waiting(request.POST.get("typed", ""))
    except UnknownClientId as error:
        return _show_ids(request, user, error)
    own = client_address(request)
    facts = {
        "person": user,
        "waiting": waiting,
        "own_address": own,
        "same_address": address_key(waiting.issued_to_address) == address_key(own),
        "checked": signing.dumps([waiting.pk, user.pk], salt=_CHECKED_SALT),
        "others": valid_ids(user).filter(kind=ClientId.Kind.CLI).count(),
    }
    return send_page(request, "confirm.html", facts)


@require_POST
@tells_errors
def confirm(request: HttpRequest) -> HttpResponse:
    user = person_of(request)
    limit_flood(request, route="activation", rate=settings.ACTIVATION_RATE, user=user)
    try:
        activate_cli_id(
            _read_checked(request, user),
            user=user,
            actor=user,
            revoke_others="revoke_others" in request.POST,
            context=request_context(request),
        )
    except UnknownClientId as error:
        return _show_ids(request, user, error)
    messages.success(request, "The id is active: your popcorn CLI can submit now.")
    return redirect("activate")


def _read_checked(request: HttpRequest, user: PopcornUser) -> ClientId:
    """The id that this person was shown. Raises UnknownClientId."""
    try:
        key, shown_to = signing.loads(
            request.POST.get("checked", ""), salt=_CHECKED_SALT, max_age=CHECKED_LIFETIME_S
        )
    except signing.BadSignature:
        raise UnknownClientId("the form has expired, type the id again") from None
    found = ClientId.objects.filter(pk=key).first()
    if shown_to != user.pk or found is None:
        raise UnknownClientId("the form was for somebody else, type the id again")
    return found


@require_POST
@tells_errors
def revoke(request: HttpRequest) -> HttpResponse:
    user = person_of(request)
    key = request.POST.get("client_id", "")
    # Digits that fit the column; anything else is no id of theirs.
    found = (
        valid_ids(user).filter(pk=int(key)).first() if key.isdecimal() and len(key) < 19 else None
    )
    if found is not None:
        revoke_client_id(found, actor=user, context=request_context(request))
        messages.success(request, "The id is revoked: who holds it is nobody from now on.")
    return redirect("activate")


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    response = redirect("activate")
    forget_person(response)
    return response
