"""A service with evidence in it, and Debian's chromium, headless."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.server.browser.watched import Watched
from tests.server.service import ROOT, Service

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def shown(tmp_path_factory, template):
    """`base_url`, `ids` of two finished requests of alice, and `page`, the first one's link."""
    service = Service(tmp_path_factory.mktemp("shown")).prepare(template)

    def run(*command: str) -> str:
        return subprocess.run(
            [sys.executable, *command],
            cwd=ROOT,
            env=service.env | {"DEBUG": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    run("manage.py", "collectstatic", "-v0", "--noinput")
    made = json.loads(run("-m", "tests.server.browser.evidence", str(service.folder)))
    try:
        service.start_web()
        yield SimpleNamespace(service=service, base_url=service.base_url, **made)
    finally:
        service.stop_all()


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium")
    assert path, "Debian's chromium is not installed"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, shown):
    """Opens the service in a fresh browser; nothing may have gone wrong in it at the end."""
    opened = []

    def open_one(**options):
        opened.append(Watched(chromium, shown.base_url, **options))
        return opened[-1]

    yield open_one
    troubles = [trouble for each in opened for trouble in each.troubles]
    for each in opened:
        each.context.close()
    assert troubles == []
