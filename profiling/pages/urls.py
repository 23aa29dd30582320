"""Addresses of the owner's page: /profile/<token>, where the CLI has no GET."""

from __future__ import annotations

from django.urls import path, register_converter

from profiling.links import PATTERN
from profiling.pages import owner


class LinkConverter:
    regex = PATTERN

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(LinkConverter, "profile_link")

_page = "profile/<profile_link:token>"
urlpatterns = [
    path(_page, owner.show, name="profile-page"),
    path(f"{_page}/compare", owner.compare, name="profile-page-compare"),
    path(f"{_page}/captures/<int:index>/archive", owner.archive, name="profile-page-archive"),
    path(f"{_page}/captures/<int:index>/<str:name>", owner.file, name="profile-page-file"),
]
