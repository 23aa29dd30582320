"""Who asks: a person by a client id, or an operator by the session of the admin site.

The guards of wire-contract.md, 1.3: *cli-only* is CliIdAuthentication, *user* is
ClientIdAuthentication, *optional user* is OptionalClientId; *admin* is in operator_token.py.
"""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from leaderboards.models import ClientId, PopcornUser, digest_client_id
from runners.exceptions import ServiceError

CLI_HEADER = "X-Popcorn-Cli-Id"
WEB_HEADER = "X-Web-Auth-Id"
SCHEME = "Popcorn-Cli-Id"
LAST_USED_EVERY = timedelta(minutes=1)


class MissingClientId(ServiceError):
    code = "missing_client_id"


class CliIdAuthentication(BaseAuthentication):
    """The *cli-only* guard. `request.auth` is the ClientId."""

    # The first of these headers that was sent decides, whatever else was sent.
    accepted: ClassVar[dict[str, ClientId.Kind]] = {CLI_HEADER: ClientId.Kind.CLI}
    required: ClassVar[bool] = True

    def authenticate(self, request: Request) -> tuple[PopcornUser, ClientId] | None:
        for header, kind in self.accepted.items():
            if sent := request.headers.get(header, ""):
                return _identify(sent, kind)
        if self.required:
            raise MissingClientId(f"the header {CLI_HEADER} is missing: register the CLI first")
        return None

    def authenticate_header(self, request: Request) -> str:
        """Without a scheme DRF would answer 403."""
        return SCHEME


class ClientIdAuthentication(CliIdAuthentication):
    """The *user* guard: a browser's id wins over a CLI's. `request.auth.kind` says which it was."""

    accepted = {WEB_HEADER: ClientId.Kind.WEB, CLI_HEADER: ClientId.Kind.CLI}


class OptionalClientId(ClientIdAuthentication):
    """The *optional user* guard: without a header `request.user` is None; a wrong id is a 401."""

    required = False


def _identify(sent: str, kind: ClientId.Kind) -> tuple[PopcornUser, ClientId]:
    found = (
        ClientId.objects.valid()
        .filter(kind=kind, digest=digest_client_id(sent), user__is_active=True)
        .select_related("user")
        .first()
    )
    if found is None or found.user is None:
        raise AuthenticationFailed(
            f"this {kind.upper()} id is not known, not activated or revoked: register again"
        )
    _note_use(found)
    return found.user, found


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

    def authenticate_header(self, request: Request) -> str:
        """DRF asks the first authenticator of a view alone, and a session needs no scheme."""
        return SCHEME
