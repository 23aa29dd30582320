"""A service for hostile input; nothing that arrives may end it or fill its log with tracebacks."""

from __future__ import annotations

import pytest

from tests.server.service import Service

ADMIN_TOKEN = "MARK-SECRET-admin-token"


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/hostile/" in str(item.path):
            item.add_marker(pytest.mark.xdist_group("hostile"))


@pytest.fixture(scope="session")
def attacked(tmp_path_factory):
    """Web server and dispatcher, with an admin token and no rates."""
    made = Service(
        tmp_path_factory.mktemp("attacked"),
        ADMIN_TOKEN=ADMIN_TOKEN,
        AUTH_RATE="100000/m",
        ACTIVATION_RATE="100000/m",
    ).prepare()
    try:
        made.start_web()
        made.start_dispatcher()
        yield made
        assert "Traceback" not in made.log()
    finally:
        made.stop_all()
