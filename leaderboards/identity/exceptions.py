"""What can go wrong while somebody signs in or activates an id; texts are for that person."""

from __future__ import annotations

from runners.exceptions import ServiceError


class UnknownProvider(ServiceError):
    code = "unknown_provider"


class ProviderNotOffered(ServiceError):
    """The operator of this service did not set this provider up."""

    code = "provider_not_offered"
    http_status = 503


class ForeignState(ServiceError):
    """The sign-in was not begun here, not in this browser, too long ago, or is over already."""

    code = "foreign_state"


class SignInRefused(ServiceError):
    """The person declined, or what the provider sent along is of no use any more."""

    code = "sign_in_refused"


class ProviderFault(ServiceError):
    """The provider did not answer as it should, or does not accept this service's set-up."""

    code = "provider_failed"
    http_status = 502


class AccountClosed(ServiceError):
    code = "account_closed"
    http_status = 403


class NotSignedIn(ServiceError):
    code = "not_signed_in"
    http_status = 401


class FormExpired(ServiceError):
    code = "csrf"
    http_status = 403


class UnknownClientId(ServiceError):
    """No id that waits for somebody: never issued, too old, or somebody's already."""

    code = "unknown_client_id"
    http_status = 404


class UnknownUser(ServiceError):
    code = "unknown_user"
    http_status = 404
