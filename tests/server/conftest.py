"""Fixtures with real processes. `service` is shared, so that tests must not stop it."""

from __future__ import annotations

import pytest

from tests.server.service import Service


def pytest_collection_modifyitems(items):
    """One worker for all tests of a folder: they share processes, and the machine is small."""
    for item in items:
        if "tests/server/" in str(item.path):
            item.add_marker(pytest.mark.xdist_group(f"server {item.path.parent.name}"))


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """A prepared service that is never started."""
    made = Service(tmp_path_factory.mktemp("template")).prepare()
    yield made
    made.stop_all()


@pytest.fixture(scope="session")
def shared_service(tmp_path_factory, template):
    """Web server and dispatcher."""
    made = Service(tmp_path_factory.mktemp("service")).prepare(template)
    try:
        made.start_web()
        made.start_dispatcher()
        yield made
    finally:
        made.stop_all()


@pytest.fixture
def service(shared_service):
    """Web server and dispatcher, with the plan that all jobs succeed at once."""
    shared_service.plan()
    return shared_service


@pytest.fixture
def make_service(tmp_path, template):
    """A service of the test's own with given settings; nothing of it is started."""
    made = []

    def make(**settings):
        folder = tmp_path / f"service-{len(made)}"
        folder.mkdir()
        made.append(Service(folder, **settings).prepare(template))
        return made[-1]

    yield make
    for each in made:
        each.stop_all()
