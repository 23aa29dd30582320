"""The login of operators, tried only so often: whoever guesses passwords here could read everything."""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponse

from leaderboards.api.flood import limit_flood
from leaderboards.identity.rendering import tells_errors


@tells_errors
def sign_in(request: HttpRequest) -> HttpResponse:
    """Django's login, at most AUTH_RATE tries of an address; beyond it 429."""
    if request.method == "POST":
        limit_flood(request, route="operator-login", rate=settings.AUTH_RATE, user=None)
    return admin.site.login(request)
