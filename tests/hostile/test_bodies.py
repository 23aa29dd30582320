"""Multipart bodies and kernel filters that hypothesis makes, through all of Django."""

from __future__ import annotations

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiling.models import ProfileRequest
from tests.server.popcorn import SUBMISSION

BOUNDED = {
    "max_examples": 60,
    "database": None,
    "derandomize": True,
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
}
PIECES = st.sampled_from(
    [
        b"--x\r\n",
        b"--x--\r\n",
        b"\r\n",
        b"\r\n\r\n",
        b'Content-Disposition: form-data; name="file"; filename="submission.py"\r\n',
        b'Content-Disposition: form-data; name="file"\r\n',
        b'Content-Disposition: form-data; name="benchmark_index"\r\n',
        b"Content-Disposition: form-data; name*=utf-8''file; filename*=utf-8''a%00b.py\r\n",
        b"Content-Type: application/octet-stream\r\n",
        b"Content-Transfer-Encoding: base64\r\n",
        SUBMISSION,
        b"0",
    ]
)
PATHS = st.sampled_from(["/profile/rowsum/B200", "/submission/rowsum/B200/test", "/profile"])


@pytest.fixture
def answer(alice, rowsum, settings):
    settings.PROFILE_RATE = "100000/m"
    settings.IN_FLIGHT_PER_USER = 1000
    client = Client(headers={"X-Popcorn-Cli-Id": "alice-cli-id", "Prefer": "respond-async"})
    return client.post


def assert_told(answered) -> None:
    """Accepted, or refused as the sender's fault with a reason in words."""
    assert answered.status_code in (202, 400, 404, 413, 415, 422, 429), answered.content
    if answered.status_code != 202:
        assert isinstance(answered.json()["detail"], str)


@settings(**BOUNDED)
@given(
    PATHS,
    st.lists(st.one_of(PIECES, st.binary(max_size=30)), max_size=12).map(b"".join),
    st.sampled_from(["multipart/form-data; boundary=x", "multipart/form-data", "text/plain"]),
)
def test_any_body_is_a_submission_or_told_what_is_wrong(answer, path, body, kind):
    assert_told(answer(path, body, content_type=kind))


@settings(**BOUNDED)
@given(
    st.one_of(
        st.text(max_size=40),
        st.text(alphabet="()[]{}*+?|^$\\.,-0123456789a", max_size=20).map("regex:".__add__),
    )
)
def test_a_filter_is_kept_as_it_was_sent_or_refused(answer, name):
    file = SimpleUploadedFile("submission.py", SUBMISSION)
    try:
        answered = answer("/profile/rowsum/B200", {"file": file, "ncu_kernel_name": name})
    except UnicodeEncodeError:  # half of a pair, which no client can send
        return

    assert_told(answered)
    if answered.status_code == 202:
        kept = ProfileRequest.objects.get(pk=answered.json()["id"])
        assert kept.ncu_kernel_name == name
        assert name
        assert not name.startswith("-")
        if name.startswith("regex:"):
            re.compile(name.removeprefix("regex:"))
