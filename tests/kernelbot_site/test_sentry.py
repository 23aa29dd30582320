"""What is sent is shown by tests/server/test_sentry.py."""

from __future__ import annotations

import sys

import pytest
from django.core.exceptions import ImproperlyConfigured

from kernelbot_site.logs import Line
from kernelbot_site.sentry import report_errors


def test_a_sentry_without_its_client_is_told_at_the_start(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentry_sdk", None)

    with pytest.raises(ImproperlyConfigured, match="extra `sentry`"):
        report_errors("http://public@127.0.0.1/1", Line())
