"""Policies on every page that a browser can show: nothing inline, nothing from elsewhere, no frame."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse


def pages():
    for model in admin.site._registry:
        yield reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    yield from ("/operators/", "/operators/password_change/", "/docs", "/activate/")


@pytest.mark.parametrize("path", sorted(pages()))
def test_every_page_is_strict_and_in_no_frame(path, admin_client):
    answer = admin_client.get(path)

    assert answer.status_code == 200
    is_strict(answer)


@pytest.mark.parametrize(
    "path", ["/operators/login/", "/operators/nothing/", "/nothing/at/all/ever"]
)
def test_pages_for_nobody_and_pages_of_errors_are_strict_too(path, db):
    answer = Client().get(path, follow=True)

    assert answer.status_code in (200, 404)
    is_strict(answer)


def is_strict(answer):
    policy = dict(
        part.strip().partition(" ")[::2]
        for part in answer["Content-Security-Policy"].split(";")
        if part.strip()
    )
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy.get("script-src", "'self'") == policy["style-src"] == "'self'"
    assert "unsafe" not in answer["Content-Security-Policy"]
    assert "http" not in answer["Content-Security-Policy"]
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"
    html = answer.content.decode()
    assert "<script>" not in html
    assert 'src="http' not in html
    assert " onclick=" not in html
