"""Signed addresses of a request's page: whoever has the link may look, until it expires."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from django.conf import settings
from django.core.signing import BadSignature, Signer
from django.urls import reverse

from profiling.models import ProfileRequest

DAY_S = 86_400
# The key of the request, when the link ends in seconds since 1970, and the signature.
PATTERN = r"[0-9a-f]{32}\.[0-9]{1,12}\.[A-Za-z0-9_-]{43}"
_SIGNER = "profiling.links"


class BadLink(ValueError):
    """Not signed by us, or expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Opens `request_id` until `until` (seconds since 1970)."""

    request_id: UUID
    until: int

    @property
    def token(self) -> str:
        return _signer().sign(f"{self.request_id.hex}.{self.until}")

    @property
    def ends_at(self) -> datetime:
        return datetime.fromtimestamp(self.until, UTC)

    def to(self, other: ProfileRequest) -> Link:
        """A link to another request that ends with this one."""
        return Link(request_id=other.pk, until=self.until)


def new_link(request: ProfileRequest) -> Link:
    until = int(time.time() + settings.REVIEW_LINK_DAYS * DAY_S)
    return Link(request_id=request.pk, until=until)


def read_link(token: str) -> Link:
    """Raises BadLink."""
    try:
        key, _, until = _signer().unsign(token).partition(".")
    except BadSignature as error:
        raise BadLink("this link was not made here") from error
    link = Link(request_id=UUID(key), until=int(until))
    if link.until < time.time():
        raise BadLink("this link has expired")
    return link


def find_link(text: str) -> Link:
    """The link in a pasted address, or the token alone. Raises BadLink."""
    found = re.search(PATTERN, text)
    if found is None:
        raise BadLink("this is not the address of a profile's page")
    return read_link(found[0])


def page_url(request: ProfileRequest) -> str:
    """The absolute address of the owner's page, for the owner alone to pass on."""
    return f"{settings.PUBLIC_URL}{reverse('profile-page', args=[new_link(request).token])}"


def _signer() -> Signer:
    return Signer(salt=_SIGNER, sep=".")
