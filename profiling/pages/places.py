"""Where the links of a page lead: to operators' pages, or further under the owner's link."""

from __future__ import annotations

from typing import Protocol

from django.http import QueryDict
from django.urls import reverse

from profiling.links import Link
from profiling.models import ProfileRequest


class Place(Protocol):
    """Addresses around one request, all of them without a host."""

    def page(self, other: ProfileRequest | None = None) -> str:
        """This page, or that of a request that belongs to this one."""

    def archive(self, index: int) -> str: ...

    def file(self, index: int, name: str) -> str: ...

    def compare(self, base: ProfileRequest | None = None) -> str:
        """Of this request, or of `base`, with another."""

    def name(self, other: ProfileRequest) -> str:
        """What `compare` takes as `with`."""


class OperatorPlace:
    """Their files are those of the API, which takes an operator's session."""

    def __init__(self, request: ProfileRequest) -> None:
        self.request = request

    def page(self, other: ProfileRequest | None = None) -> str:
        return reverse("admin:profiling_profilerequest_review", args=[(other or self.request).pk])

    def archive(self, index: int) -> str:
        return reverse("capture-archive", args=[self.request.pk, index])

    def file(self, index: int, name: str) -> str:
        return reverse("capture-file", args=[self.request.pk, index, name])

    def compare(self, base: ProfileRequest | None = None) -> str:
        return reverse("admin:profiling_profilerequest_compare", args=[(base or self.request).pk])

    def name(self, other: ProfileRequest) -> str:
        return str(other.pk)


class OwnerPlace:
    def __init__(self, link: Link) -> None:
        self.link = link

    def page(self, other: ProfileRequest | None = None) -> str:
        link = self.link.to(other) if other else self.link
        return reverse("profile-page", args=[link.token])

    def archive(self, index: int) -> str:
        return reverse("profile-page-archive", args=[self.link.token, index])

    def file(self, index: int, name: str) -> str:
        return reverse("profile-page-file", args=[self.link.token, index, name])

    def compare(self, base: ProfileRequest | None = None) -> str:
        link = self.link.to(base) if base else self.link
        return reverse("profile-page-compare", args=[link.token])

    def name(self, other: ProfileRequest) -> str:
        return self.link.to(other).token


def with_query(address: str, **query: object) -> str:
    said = QueryDict(mutable=True)
    said.update({name: str(value) for name, value in query.items() if value != ""})
    return f"{address}?{said.urlencode()}" if said else address
