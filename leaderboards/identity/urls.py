"""Addresses of identity: two of the CLI's, the operators' bans, and the activation page."""

from __future__ import annotations

from django.urls import path
from django.views.generic import RedirectView

from leaderboards.api import converters  # noqa: F401  registers <name:…>
from leaderboards.api.identity import AuthInitView, BanView
from leaderboards.identity import callback, pages

urlpatterns = [
    path("auth/init", AuthInitView.as_view()),
    path("auth/cli/<name:provider>", callback.finish_sign_in),
    path("admin/ban/<name:user_id>", BanView.as_view()),
    path("activate", RedirectView.as_view(pattern_name="activate")),
    path("activate/", pages.show, name="activate"),
    path("activate/sign-in/<name:provider>", pages.begin, name="activate-sign-in"),
    path("activate/check", pages.check, name="activate-check"),
    path("activate/confirm", pages.confirm, name="activate-confirm"),
    path("activate/revoke", pages.revoke, name="activate-revoke"),
    path("activate/sign-out", pages.sign_out, name="activate-sign-out"),
]
