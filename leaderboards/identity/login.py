"""Signing in: a state of this service, for one trip, in the browser that began it (FR-35)."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.utils import timezone

from leaderboards import audit
from leaderboards.audit import RequestContext
from leaderboards.identity.exceptions import AccountClosed, ForeignState
from leaderboards.identity.oauth import Profile, authorization_url
from leaderboards.identity.providers import Provider
from leaderboards.models import Identity, LoginAttempt, PopcornUser, digest_client_id
from leaderboards.models.people import new_user_id
from leaderboards.verbs import Verb

# Each new attempt takes up to so many old ones away, so that no clock of another's is needed.
CLEAN_UP_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Begun:
    """Where to send the browser, and the secret that it keeps as a cookie meanwhile."""

    url: str
    browser: str


def begin_sign_in(provider: Provider) -> Begun:
    """A new state, kept as its digest."""
    now = timezone.now()
    over = LoginAttempt.objects.filter(expires_at__lt=now).values_list("pk", flat=True)
    LoginAttempt.objects.filter(pk__in=list(over[:CLEAN_UP_AT_ONCE])).delete()
    state, browser = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    LoginAttempt.objects.create(
        state_digest=digest_client_id(state),
        browser_digest=digest_client_id(browser),
        provider=provider.name,
    )
    return Begun(authorization_url(provider, state), browser)


def use_state(state: str, *, browser: str, provider: Provider) -> None:
    """Take the state out of circulation, for whoever began with it. Raises ForeignState.

    One UPDATE, so that of two requests at once one gets it. A state in a wrong browser stays as
    it is: who stole it must not be able to spoil the sign-in either.
    """
    now = timezone.now()
    used = LoginAttempt.objects.filter(
        state_digest=digest_client_id(state),
        browser_digest=digest_client_id(browser),
        provider=provider.name,
        used_at__isnull=True,
        expires_at__gt=now,
    ).update(used_at=now)
    if used != 1:
        raise ForeignState(
            "this sign-in was not begun here in this browser, has expired, or is over already; "
            "the popcorn CLI's own link cannot activate an id here: "
            "sign in on the activation page and type the id there"
        )


def sign_in(profile: Profile, *, context: RequestContext) -> PopcornUser:
    """The person of this profile; made on the first visit, whole or not at all.

    Raises AccountClosed for who was banned or switched off.
    """
    try:
        user = _find_or_register(profile, context)
    except IntegrityError:
        # Another request of theirs was first.
        user = _find_or_register(profile, context)
    if user.banned_at is not None or not user.is_active:
        raise AccountClosed("this account is banned; ask the operators of this service")
    audit.record(Verb.USER_SIGNED_IN, user, actor=user, context=context, provider=profile.provider)
    return user


@transaction.atomic
def _find_or_register(profile: Profile, context: RequestContext) -> PopcornUser:
    known = (
        Identity.objects.select_related("user")
        .filter(provider=profile.provider, provider_id=profile.provider_id)
        .first()
    )
    if known is not None:
        return known.user
    username, user_id = f"{profile.provider}-{profile.provider_id}", profile.provider_id
    # Two providers may use the same number, and an operator any name.
    if PopcornUser.objects.filter(username=username).exists():
        username = new_user_id()
    if PopcornUser.objects.filter(user_id=user_id).exists():
        user_id = new_user_id()
    user = PopcornUser(username=username, user_id=user_id, display_name=profile.name)
    user.set_unusable_password()
    user.save()
    Identity.objects.create(user=user, provider=profile.provider, provider_id=profile.provider_id)
    audit.record(
        Verb.USER_REGISTERED,
        user,
        actor=user,
        context=context,
        name=profile.name,
        provider=profile.provider,
    )
    return user
