"""The two short-lived cookies of signing in. Neither opens the admin site, whoever has it."""

from __future__ import annotations

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse

from leaderboards.identity.exceptions import NotSignedIn
from leaderboards.models import PopcornUser
from leaderboards.models.logins import LOGIN_LIFETIME

# Binds a state to the browser that began with it.
BROWSER_COOKIE = "sign_in"
BROWSER_PATH = "/auth/cli/"
# Who signed in, signed: enough for activating an id, and over soon.
PERSON_COOKIE = "activation"
PERSON_PATH = "/activate/"
PERSON_LIFETIME_S = 15 * 60
_SALT = "leaderboards.identity.person"


def remember_browser(response: HttpResponse, browser: str) -> None:
    lifetime = int(LOGIN_LIFETIME.total_seconds())
    _set(response, BROWSER_COOKIE, browser, BROWSER_PATH, lifetime)


def remember_person(response: HttpResponse, user: PopcornUser) -> None:
    value = signing.dumps(user.pk, salt=_SALT)
    _set(response, PERSON_COOKIE, value, PERSON_PATH, PERSON_LIFETIME_S)
    response.delete_cookie(BROWSER_COOKIE, path=BROWSER_PATH)


def forget_person(response: HttpResponse) -> None:
    response.delete_cookie(PERSON_COOKIE, path=PERSON_PATH)


def person_of(request: HttpRequest) -> PopcornUser:
    """Who signed in. Raises NotSignedIn; a ban ends a session at once."""
    try:
        key = signing.loads(
            request.COOKIES.get(PERSON_COOKIE, ""), salt=_SALT, max_age=PERSON_LIFETIME_S
        )
    except signing.BadSignature:
        raise NotSignedIn("you are not signed in, or your sign-in is over") from None
    user = PopcornUser.objects.filter(pk=key, is_active=True, banned_at__isnull=True).first()
    if user is None:
        raise NotSignedIn("your account has been closed since you signed in")
    return user


def _set(response: HttpResponse, name: str, value: str, path: str, lifetime_s: int) -> None:
    # Lax, because the way back from the provider is a navigation from another site.
    response.set_cookie(
        name,
        value,
        max_age=lifetime_s,
        path=path,
        secure=settings.HTTPS,
        httponly=True,
        samesite="Lax",
    )
