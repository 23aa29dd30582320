"""Downloads that go on where they broke off: ranges of archives (FR-21)."""

from __future__ import annotations

import pytest

from tests.server.popcorn import form
from tests.server.ranges import check_ranges
from tests.server.test_requests_api import PATH

MIB = 2**20


def profile(service) -> dict:
    with service.client() as client:
        answer = client.post(PATH, headers={"Prefer": "respond-async"}, **form())
    return service.wait_until_final(answer.json()["id"])


@pytest.fixture(scope="module")
def archive(shared_service):
    """Address and content of an archive that one read does not hold."""
    path = shared_service.make_archive(6 * MIB)
    shared_service.plan(archive=str(path))
    finished = profile(shared_service)
    shared_service.plan()
    return finished["captures"][0]["archive"]["url"], path.read_bytes()


def get(service, url, **headers):
    with service.client() as client:
        return client.get(url, headers={name.replace("_", "-"): v for name, v in headers.items()})


def test_any_one_range_of_an_archive_is_given(service, archive):
    url, content = archive

    check_ranges(service, url, content)


def test_a_download_that_broke_off_goes_on_only_with_the_same_version(service, archive):
    url, content = archive
    etag = get(service, url).headers["ETag"]

    rest = get(service, url, Range="bytes=1000-", If_Range=etag)
    of_another = get(service, url, Range="bytes=1000-", If_Range='"another"')
    weak = get(service, url, Range="bytes=1000-", If_Range=f"W/{etag}")

    assert (rest.status_code, rest.content) == (206, content[1000:])
    assert [(a.status_code, a.content) for a in (of_another, weak)] == [(200, content)] * 2


def test_a_range_behind_the_end_is_refused_with_the_size(service, archive):
    url, content = archive

    answers = [get(service, url, Range=asked) for asked in (f"bytes={len(content)}-", "bytes=-0")]

    assert [answer.status_code for answer in answers] == [416, 416]
    assert answers[0].headers["Content-Range"] == f"bytes */{len(content)}"


@pytest.mark.parametrize(
    "asked",
    ["bytes=0-1,5-6", "bytes=9-2", "bytes=-", "bytes=a-b", "lines=1-2", "bytes=" + "9" * 90],
)
def test_what_is_no_single_range_gets_the_whole_file(service, archive, asked):
    url, content = archive

    answer = get(service, url, Range=asked)

    assert (answer.status_code, answer.content) == (200, content)


def test_head_tells_that_ranges_are_given_and_sends_none(service, archive):
    url, content = archive

    with service.client() as client:
        answer = client.head(url, headers={"Range": "bytes=0-9"})

    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["Content-Length"] == str(len(content))
    assert answer.headers["Accept-Ranges"] == "bytes"


def test_what_the_client_has_already_is_not_sent_again_whatever_the_range(service, archive):
    url, _ = archive
    etag = get(service, url, Range="bytes=0-0").headers["ETag"]

    assert get(service, url, Range="bytes=0-9", If_None_Match=etag).status_code == 304


def test_files_inside_an_archive_are_given_in_ranges_too(service, archive):
    url, _ = archive
    report = url.replace("/archive/", "/report")
    whole = get(service, report).content

    answer = get(service, report, Range="bytes=100-199")

    assert (answer.status_code, answer.content) == (206, whole[100:200])


def test_a_storage_that_cannot_sign_sends_the_file_itself(make_service):
    service = make_service(SIGNED_DOWNLOADS_S=60)
    service.start_web()
    service.start_dispatcher()
    url = profile(service)["captures"][0]["archive"]["url"]

    answer = get(service, url)

    assert (answer.status_code, answer.content) == (200, service.archive.read_bytes())
