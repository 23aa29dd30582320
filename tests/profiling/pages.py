"""The operators' pages."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.test import Client
from django.urls import reverse

APPS = ("leaderboards", "profiling", "runners")
SHOWN = [model for model in admin.site._registry if model._meta.app_label in APPS]
HOSTILE = "<script>alert('x')</script>"


def page_of(model: type[Model], *, of: Any = None) -> str:
    """The list, or the page of the row with the key `of`."""
    names = model._meta
    if of is None:
        return reverse(f"admin:{names.app_label}_{names.model_name}_changelist")
    return reverse(f"admin:{names.app_label}_{names.model_name}_change", args=[of])


def text_of(site: Client, page: str) -> str:
    answer = site.get(page)
    assert answer.status_code == 200, page
    return answer.content.decode()
