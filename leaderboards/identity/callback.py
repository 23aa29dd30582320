"""GET /auth/cli/{provider}: where a provider sends the browser back to (wire-contract.md, 3.3).

It signs the person in to the activation page and activates nothing: whoever could choose the id in
a link would own an id of whoever follows it.
"""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET

from leaderboards.api.context import request_context
from leaderboards.api.flood import limit_flood
from leaderboards.identity.cookies import BROWSER_COOKIE, remember_person
from leaderboards.identity.exceptions import SignInRefused
from leaderboards.identity.login import sign_in, use_state
from leaderboards.identity.oauth import fetch_profile
from leaderboards.identity.providers import Provider, provider_called
from leaderboards.identity.rendering import send_error
from runners.exceptions import ServiceError


@require_GET
async def finish_sign_in(request: HttpRequest, provider: str) -> HttpResponse:
    """A coroutine: waiting for a provider must not hold one of the few threads of all views."""
    try:
        code, state, found = await sync_to_async(_read_return)(request, provider)
        profile = await fetch_profile(found, code=code, state=state)
        user = await sync_to_async(sign_in)(profile, context=request_context(request))
    except ServiceError as error:
        return await sync_to_async(send_error)(request, error)
    response = redirect("activate")
    remember_person(response, user)
    response["Cache-Control"] = "no-store"
    return response


def _read_return(request: HttpRequest, name: str) -> tuple[str, str, Provider]:
    """Code and state, the state used up. Raises a ServiceError."""
    limit_flood(request, route="auth-callback", rate=settings.AUTH_RATE, user=None)
    provider = provider_called(name)
    state, code = request.GET.get("state", ""), request.GET.get("code", "")
    use_state(state, browser=request.COOKIES.get(BROWSER_COOKIE, ""), provider=provider)
    if "error" in request.GET:
        raise SignInRefused(f"{provider.label} says that you did not agree to sign in")
    if not code:
        raise SignInRefused(f"{provider.label} sent you back without a code")
    return code, state, provider
