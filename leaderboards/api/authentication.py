"""Who asks: a person by the id of their CLI, or an operator by the session of the admin site."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from leaderboards.models import ClientId, PopcornUser, digest_client_id
from runners.exceptions import ServiceError

CLI_HEADER = "X-Popcorn-Cli-Id"
LAST_USED_EVERY = timedelta(minutes=1)


class MissingClientId(ServiceError):
    code = "missing_client_id"


class CliIdAuthentication(BaseAuthentication):
    """The *cli-only* guard (wire-contract.md, 1.3). `request.auth` is the ClientId."""

    def authenticate(self, request: Request) -> tuple[PopcornUser, ClientId]:
        sent = request.headers.get(CLI_HEADER, "")
        if not sent:
            raise MissingClientId(f"the header {CLI_HEADER} is missing: register the CLI first")
        found = (
            ClientId.objects.valid()
            .filter(kind=ClientId.Kind.CLI, digest=digest_client_id(sent), user__is_active=True)
            .select_related("user")
            .first()
        )
        if found is None or found.user is None:
            raise AuthenticationFailed(
                "this CLI id is not known, not activated or revoked: register the CLI again"
            )
        _note_use(found)
        return found.user, found

    def authenticate_header(self, request: Request) -> str:
        """Without a scheme DRF would answer 403."""
        return "Popcorn-Cli-Id"


def person(request: Request) -> PopcornUser:
    """Who asks, in a view that nobody reaches without an identity."""
    assert isinstance(request.user, PopcornUser)
    return request.user


def _note_use(client_id: ClientId) -> None:
    """Once a minute at most: requests outnumber what anybody wants to know about them."""
    now = timezone.now()
    if client_id.last_used_at is None or now - client_id.last_used_at > LAST_USED_EVERY:
        ClientId.objects.filter(pk=client_id.pk).update(last_used_at=now)


class OperatorSession(BaseAuthentication):
    """A session of the admin site: for reading only, so that no form token is needed."""

    def authenticate(self, request: Request) -> tuple[PopcornUser, None] | None:
        user = getattr(request._request, "user", None)
        if isinstance(user, PopcornUser) and user.is_active and user.is_staff:
            return user, None
        return None
