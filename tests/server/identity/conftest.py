"""One web server with a provider of its own; everybody who signs in is somebody new."""

from __future__ import annotations

import itertools

import pytest

from tests.server.identity.browser import Browser
from tests.server.identity.provider import Provider
from tests.server.service import Service

ADMIN_TOKEN = "MARK-SECRET-admin-token"
_numbers = itertools.count(5000)


@pytest.fixture(scope="session")
def shared_provider():
    made = Provider()
    yield made
    made.close()


@pytest.fixture(scope="session")
def shared_site(tmp_path_factory, shared_provider):
    settings = shared_provider.settings | {
        "ADMIN_TOKEN": ADMIN_TOKEN,
        "AUTH_RATE": "100000/m",
        "ACTIVATION_RATE": "8/m",
        "PROVIDER_LIMIT_S": "5",
        "LOG_LEVEL": "DEBUG",
    }
    made = Service(tmp_path_factory.mktemp("identity"), **settings).prepare()
    try:
        made.start_web()
        yield made
    finally:
        made.stop_all()


@pytest.fixture
def provider(shared_provider):
    """Behaves; knows one person, who was never here."""
    shared_provider.behave()
    number = next(_numbers)
    shared_provider.person = {"id": number, "login": f"ada{number}", "username": f"ada{number}"}
    return shared_provider


@pytest.fixture
def site(shared_site, provider):
    """The web server, set up for `provider`."""
    return shared_site


@pytest.fixture
def make_browser(site):
    made = []

    def make(**headers):
        made.append(Browser(site.base_url, **headers))
        return made[-1]

    yield make
    for browser in made:
        browser.close()


@pytest.fixture
def browser(make_browser):
    return make_browser()


@pytest.fixture
def issue(site):
    """Asks for an id, as `popcorn register` does."""

    def ask():
        with site.client(cli_id=None) as client:
            answer = client.get("/auth/init?provider=github")
        assert answer.status_code == 200, answer.text
        return answer.json()["state"]

    return ask


@pytest.fixture
def works(site):
    """The status that a request with this CLI id gets: 200, or 401 when it is nobody's."""

    def ask(cli_id):
        with site.client(cli_id=cli_id) as client:
            return client.get("/api/profile-requests/").status_code

    return ask


@pytest.fixture
def person_rows(site, provider):
    """The accounts of the person that `provider` knows now."""

    def read():
        return site.rows(
            "SELECT u.* FROM leaderboards_popcornuser u JOIN leaderboards_identity i"
            " ON i.user_id = u.id WHERE i.provider_id = ?",
            str(provider.person["id"]),
        )

    return read
