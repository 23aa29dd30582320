"""The trip to a provider: where to send the browser, and who came back.

What a provider answers may hold codes and tokens, so it is never logged or told: only the step
that failed, the status and the kind of the error are.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx
from django.conf import settings
from django.utils.crypto import salted_hmac
from oauthlib.oauth2 import OAuth2Error, WebApplicationClient

from leaderboards.identity.exceptions import ProviderFault, SignInRefused
from leaderboards.identity.providers import Provider

log = logging.getLogger(__name__)

# Errors that a code which was used or is too old gets: the person can begin again.
_STALE_CODE = {"invalid_grant", "bad_verification_code"}
_FORM = "application/x-www-form-urlencoded"
_ID = re.compile(r"[0-9]{1,32}")
_ERROR_KIND = re.compile(r"[a-z_]{1,64}")
NAME_CHARS = 100


@dataclass(frozen=True, slots=True)
class Profile:
    """A person as the provider knows them; `provider_id` is digits."""

    provider: str
    provider_id: str
    name: str


def authorization_url(provider: Provider, state: str) -> str:
    """Where the browser signs in and comes back from with a code and `state`."""
    client = WebApplicationClient(provider.client_id)
    address: str = client.prepare_request_uri(
        provider.authorize_url,
        redirect_uri=provider.redirect_uri,
        scope=provider.scope or None,
        state=state,
        code_challenge=client.create_code_challenge(_code_verifier(state), "S256"),
        code_challenge_method="S256",
    )
    return address


async def fetch_profile(provider: Provider, *, code: str, state: str) -> Profile:
    """Redeem the code and read the profile. Raises SignInRefused or ProviderFault, in bounded time.

    A coroutine, because a provider may be slow and there are few threads.
    """
    try:
        async with (
            asyncio.timeout(settings.PROVIDER_LIMIT_S),
            httpx.AsyncClient(timeout=settings.PROVIDER_LIMIT_S) as http,
        ):
            token = await _redeem(http, provider, code, state)
            return await _read_profile(http, provider, token)
    except (httpx.HTTPError, TimeoutError) as error:
        log.warning("sign-in: %s cannot be reached: %s", provider.name, type(error).__name__)
        raise ProviderFault(
            f"{provider.label} does not answer at the moment, try again in a minute"
        ) from None  # the cause may quote what was sent


async def _redeem(http: httpx.AsyncClient, provider: Provider, code: str, state: str) -> str:
    """The access token for a code."""
    client = WebApplicationClient(provider.client_id)
    body = client.prepare_request_body(
        code=code,
        redirect_uri=provider.redirect_uri,
        code_verifier=_code_verifier(state),
        client_secret=provider.client_secret,
    )
    answer = await http.post(
        provider.token_url,
        content=body,
        headers={"Accept": "application/json", "Content-Type": _FORM},
    )
    try:
        token = client.parse_request_body_response(answer.text)
    except OAuth2Error as error:
        # GitHub tells errors with status 200, Discord with 400; both in the body.
        kind = str(error.error)
        if kind in _STALE_CODE:
            raise SignInRefused(
                f"{provider.label} says that this sign-in was used already or is too old"
            ) from None
        known = kind if _ERROR_KIND.fullmatch(kind) else "unreadable"
        raise _fault(provider, "token", answer, known) from None
    except (ValueError, TypeError, AttributeError):
        raise _fault(provider, "token", answer, "unreadable") from None
    if not answer.is_success:
        raise _fault(provider, "token", answer, "status")
    return str(token["access_token"])


async def _read_profile(http: httpx.AsyncClient, provider: Provider, token: str) -> Profile:
    answer = await http.get(
        provider.profile_url,
        headers={"Accept": "application/json", "Authorization": f"Bearer {token}"},
    )
    if answer.status_code != HTTPStatus.OK:
        raise _fault(provider, "profile", answer, "status")
    try:
        facts: Any = answer.json()
    except ValueError:
        raise _fault(provider, "profile", answer, "unreadable") from None
    if not isinstance(facts, dict):
        raise _fault(provider, "profile", answer, "unreadable")
    provider_id, name = str(facts.get("id")), facts.get(provider.name_key)
    if not _ID.fullmatch(provider_id) or not isinstance(name, str):
        raise _fault(provider, "profile", answer, "incomplete")
    shown = "".join(letter for letter in name if letter.isprintable()).strip()[:NAME_CHARS]
    return Profile(provider.name, provider_id, shown or f"{provider.name}-{provider_id}")


def _fault(provider: Provider, step: str, answer: httpx.Response, kind: str) -> ProviderFault:
    log.warning("sign-in: %s, %s: %s, %s", provider.name, step, answer.status_code, kind)
    return ProviderFault(
        f"{provider.label} did not let this service read your profile; "
        "nothing is wrong on your side, try again in a minute"
    )


def _code_verifier(state: str) -> str:
    """PKCE's secret of one sign-in: only who knows SECRET_KEY can tell it from the state."""
    mac = salted_hmac("leaderboards.identity.pkce", state, algorithm="sha256")
    return base64.urlsafe_b64encode(mac.digest()).decode().rstrip("=")
