"""Archives that lie in S3, downloaded over HTTP: in ranges, flat in memory, by signed addresses."""

from __future__ import annotations

import re
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.modal.s3_front import S3Front
from tests.object_store import AWS, BUCKET
from tests.server.ranges import check_ranges
from tests.server.test_ranges import profile

pytestmark = pytest.mark.services
MIB = 2**20


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    """It checks signatures."""
    made = S3Front(tmp_path_factory.mktemp("s3") / "hold")
    yield made
    made.close()


@pytest.fixture
def start(make_service, s3):
    """A service that keeps its captures in S3, with the archive of one request."""

    def made(size: int, **settings):
        service = make_service(
            REPORTS_STORAGE_URL=f"s3://{BUCKET}", REPORTS_S3_ENDPOINT=s3.url, **AWS, **settings
        )
        path = service.make_archive(size)
        service.plan(archive=str(path))
        service.start_web()
        service.start_dispatcher()
        return service, profile(service)["captures"][0]["archive"], path.read_bytes()

    return made


def memory_of(pid: int) -> int:
    """Most bytes that the process ever held."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 2**10


def test_ranges_of_an_archive_in_s3_are_given_and_memory_stays_flat(start):
    """FR-21."""
    service, archive, content = start(24 * MIB)
    for _ in range(3):  # until every thread of the server has had its buffers and its connection
        check_ranges(service, archive["url"], content)
    before = memory_of(service.pid("web"))

    check_ranges(service, archive["url"], content)

    assert memory_of(service.pid("web")) - before < 16 * MIB


def test_a_signed_address_gives_the_archive_without_an_id(start):
    service, archive, content = start(MIB, SIGNED_DOWNLOADS_S=120)

    with service.client() as client:
        led = client.get(archive["url"])
        head = client.head(archive["url"])
    with httpx.Client(trust_env=False) as stranger:
        answer = stranger.get(led.headers["Location"])
        part = stranger.get(led.headers["Location"], headers={"Range": "bytes=3-9"})
    with service.client("bob-cli-id") as client:
        refused = client.get(archive["url"])

    assert (led.status_code, led.headers["Cache-Control"]) == (302, "no-store")
    assert answer.content == content
    assert part.content == content[3:10]
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="rowsum-B200-')
    query = parse_qs(urlsplit(led.headers["Location"]).query)
    assert "Signature" in " ".join(query)
    assert AWS["AWS_SECRET_ACCESS_KEY"] not in query.get("X-Amz-Signature", [])
    assert (head.status_code, head.headers["Content-Length"]) == (200, str(len(content)))
    assert refused.status_code == 404


@pytest.fixture
def signed(start):
    """Lead alice to the storage, with an address that is good for so many seconds."""

    def lead(seconds: int) -> tuple[str, bytes]:
        service, archive, content = start(2**10, SIGNED_DOWNLOADS_S=seconds)
        with service.client() as client:
            return client.get(archive["url"]).headers["Location"], content

    return lead


def get(url: str) -> httpx.Response:
    with httpx.Client(trust_env=False) as stranger:
        return stranger.get(url)


def test_an_altered_signed_address_is_refused(signed, s3):
    """Another key, a longer life, another name or kind of the file, another signature."""
    url, content = signed(120)
    key = urlsplit(url).path.removeprefix(f"/{BUCKET}/")
    other = f"{key.rpartition('/')[0]}/other.zip"
    s3.client().put_object(Bucket=BUCKET, Key=other, Body=b"of somebody else")
    signature = parse_qs(urlsplit(url).query)["X-Amz-Signature"][0]
    forged = "0" * len(signature)

    refused = {}
    for true, false in (
        (key, other),
        ("X-Amz-Expires=120", "X-Amz-Expires=604800"),
        ("rowsum-B200-", "evil-B200-"),
        ("application%2Fzip", "text%2Fhtml"),
        (signature, forged),
    ):
        assert true in url
        refused[false] = get(url.replace(true, false))

    assert {name: answer.status_code for name, answer in refused.items()} == dict.fromkeys(
        refused, 403
    )
    assert {answer.text for answer in refused.values()} == {"SignatureDoesNotMatch"}
    assert get(url).content == content


def test_a_signed_address_is_refused_when_its_time_is_over(signed):
    url, content = signed(3)
    assert get(url).content == content

    time.sleep(4.1)
    late = get(url)

    assert (late.status_code, late.text) == (403, "AccessDenied: Request has expired")


def test_without_the_setting_nobody_is_led_away(start):
    service, archive, content = start(MIB)

    with service.client() as client:
        answer = client.get(archive["url"])

    assert (answer.status_code, answer.content) == (200, content)
