"""The link that ends every stream of a profile, and where it leads."""

from __future__ import annotations

import re

import httpx
import pytest

from tests.server.popcorn import PATH, Stream, form


@pytest.fixture
def told(service):
    """Gives the last status message of a profile's stream."""

    def run(**plan) -> str:
        service.plan(**plan)
        with service.client() as client, client.stream("POST", PATH, **form()) as response:
            stream = Stream(response)
            stream.last()
        return stream.messages[-1]

    return run


def link_in(message: str) -> str:
    (found,) = re.findall(r"http://\S+", message)
    return found


@pytest.mark.parametrize("archive", ["capture", "none"])
def test_the_last_status_message_has_the_link_whatever_came_of_it(service, told, archive):
    message = told() if archive == "capture" else told(archive="")

    assert message.startswith("look at it, for 30 days: ")
    page = httpx.get(link_in(message), trust_env=False)
    assert page.status_code == 200
    assert page.headers["Content-Type"].startswith("text/html")
    assert "Profile of rowsum on B200" in page.text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]


def test_the_archive_under_the_link_is_the_one_that_was_stored(service, told):
    page = link_in(told())

    archive = httpx.get(f"{page}/captures/0/archive", trust_env=False)

    assert archive.content == service.archive.read_bytes()
    other = httpx.get(
        f"{page[:-1]}{'A' if page[-1] != 'A' else 'B'}/captures/0/archive", trust_env=False
    )
    assert other.status_code == 404
