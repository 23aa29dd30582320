"""The `reports` storage against a real S3 server, over HTTP: whole, flat in memory, patient."""

from __future__ import annotations

import hashlib
import os
import resource
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from io import StringIO
from threading import Barrier
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.files import File
from django.core.files.storage import storages
from django.core.management import CommandError, call_command
from django.utils import timezone

from runners import storage_s3
from runners.artifacts import ArtifactGone, StorageUnavailable, open_artifact, store_artifact
from runners.models import Artifact, Job
from runners.states import JobStatus
from runners.transitions import queue_job
from tests.object_store import AWS, BUCKET, ObjectStore
from tests.signatures import aws_signature, signature_in

pytestmark = [pytest.mark.services, pytest.mark.xdist_group("s3")]
KIB, MIB = 2**10, 2**20


@pytest.fixture(scope="module")
def s3():
    made = ObjectStore()
    yield made
    made.kill()


@pytest.fixture
def reports(s3, settings, monkeypatch):
    """The storage as settings.py makes it for this server."""
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
    s3.thaw()
    s3.empty()
    options = {"bucket_name": BUCKET, "endpoint_url": s3.url, "file_overwrite": True}
    settings.STORAGES = settings.STORAGES | {
        "reports": {
            "BACKEND": "runners.storage_s3.ReportsS3Storage",
            "OPTIONS": options | {"default_acl": None},
        }
    }
    return storages["reports"]


@pytest.fixture
def make_file(tmp_path):
    def make(content: bytes, name: str = "capture.zip"):
        path = tmp_path / name
        path.write_bytes(content)
        return path, {
            "size": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "content_type": "application/zip",
        }

    return make


@pytest.fixture
def job(db, monkeypatch):
    monkeypatch.setattr("runners.transitions.handler_of", lambda job: None)
    return queue_job(kind="test", gpu="B200", runner="fake", owner_key="a", actor_label="alice")


def test_a_large_file_is_read_back_whole_and_flat_in_memory(reports, tmp_path):
    """FR-21."""
    path = tmp_path / "large"
    digest = hashlib.sha256()
    with path.open("wb") as out:
        for _ in range(100):
            piece = os.urandom(MIB)
            digest.update(piece)
            out.write(piece)
    with path.open("rb") as source:
        reports.save("large", File(source))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    read = hashlib.sha256()
    with reports.open("large") as stored:
        while piece := stored.read(192 * KIB):
            read.update(piece)

    assert read.digest() == digest.digest()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * KIB
    assert grown < 32 * MIB


def test_a_file_in_an_archive_is_found_by_ranges(reports, tmp_path):
    path = tmp_path / "archive.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("large", os.urandom(9 * MIB))
        archive.writestr("small", "at the end")
    with path.open("rb") as source:
        reports.save("archive.zip", File(source))

    with reports.open("archive.zip") as stored, zipfile.ZipFile(stored) as archive:
        assert archive.read("small") == b"at the end"
        assert archive.testzip() is None


def test_a_download_waits_while_the_storage_is_frozen(reports, s3, monkeypatch, tmp_path):
    monkeypatch.setattr(storage_s3, "READ_AGAIN_S", 0.2)
    reports.client_config.read_timeout = 1
    content = os.urandom(3 * storage_s3.RANGE_BYTES)
    (tmp_path / "content").write_bytes(content)
    with (tmp_path / "content").open("rb") as source:
        reports.save("frozen", File(source))
    with reports.open("frozen") as stored:
        begin = stored.read(KIB)
        s3.freeze()
        threading.Timer(4, s3.thaw).start()

        rest = stored.read()

    assert begin + rest == content


def test_a_storage_that_stays_away_ends_the_download_with_an_error(reports, s3, monkeypatch):
    monkeypatch.setattr(storage_s3, "READ_PATIENCE_S", 0)
    reports.client_config.read_timeout = 1
    reports.save("away", File(storage_file(2 * storage_s3.RANGE_BYTES)))
    with reports.open("away") as stored:
        stored.read(KIB)
        s3.freeze()

        with pytest.raises(OSError, match="does not give away"):
            stored.read()


def test_an_object_that_was_replaced_meanwhile_is_not_mixed_with_the_old_one(reports):
    reports.save("changing", File(storage_file(2 * storage_s3.RANGE_BYTES)))
    with reports.open("changing") as stored:
        stored.read(KIB)
        reports.save("changing", File(storage_file(2 * storage_s3.RANGE_BYTES, b"x")))

        with pytest.raises(OSError, match="does not give changing"):
            stored.read()


def test_artifacts_of_two_jobs_with_one_name_are_two_objects(reports, s3, job, make_file):
    """FR-32."""
    other = queue_job(kind="test", gpu="B200", runner="fake", owner_key="b", actor_label="bob")
    for each, content in ((job, b"of alice"), (other, b"of bob")):
        path, facts = make_file(content)
        store_artifact(each, "profile.0.zip", path, **facts)

    stored = {a.job_id: open_artifact(a).read() for a in Artifact.objects.all()}

    assert stored == {job.pk: b"of alice", other.pk: b"of bob"}
    assert {f"{each.pk}/1/profile.0.zip" for each in (job, other)} <= set(s3.keys())


def test_storing_twice_leaves_one_object_with_the_right_content(reports, s3, job, make_file):
    """FR-32: also when the first try left half of it, or something else, under the key."""
    path, facts = make_file(b"the whole content")
    reports.save(f"{job.pk}/1/profile.0.zip", File(storage_file(5)))

    first = store_artifact(job, "profile.0.zip", path, **facts)
    Artifact.objects.all().delete()  # a crash between the object and its row
    second = store_artifact(job, "profile.0.zip", path, **facts)

    assert first.file.name == second.file.name
    assert open_artifact(second).read() == b"the whole content"
    assert len([key for key in s3.keys() if str(job.pk) in key]) == 1  # noqa: SIM118


def test_an_upload_that_freezes_half_way_is_an_outage_and_succeeds_later(
    reports, s3, job, make_file
):
    """Longer than the storage may stall: the job keeps its file and is collected again."""
    # A socket takes the limit of connecting for what it sends.
    reports.client_config.connect_timeout = reports.client_config.read_timeout = 1
    path, facts = make_file(os.urandom(10 * MIB))
    parts = []

    def freeze_at_the_second(**_: object) -> None:
        parts.append(1)
        if len(parts) == 2:
            s3.freeze()

    events = reports.connection.meta.client.meta.events
    events.register_first("before-send.s3.UploadPart", freeze_at_the_second)
    with pytest.raises(StorageUnavailable):
        store_artifact(job, "profile.0.zip", path, **facts)
    s3.thaw()

    assert not Artifact.objects.exists()
    stored = store_artifact(job, "profile.0.zip", path, **facts)
    assert hashlib.sha256(open_artifact(stored).read()).hexdigest() == facts["sha256"]
    assert [key for key in s3.keys() if str(job.pk) in key] == [stored.file.name]  # noqa: SIM118


def test_a_missing_object_is_gone_and_a_missing_storage_is_not(reports, s3, job, make_file):
    path, facts = make_file(b"content")
    artifact = store_artifact(job, "profile.0.zip", path, **facts)
    reports.delete(artifact.file.name)

    with pytest.raises(ArtifactGone):
        open_artifact(artifact)

    s3.kill()
    try:
        with pytest.raises(StorageUnavailable):
            open_artifact(artifact)
    finally:
        s3.start()


def test_a_signed_address_lives_as_long_as_it_is_told_and_is_good_for_nothing_else(reports):
    """Key, lifetime, name of the file: with any other the signature is not that of the address."""
    before = datetime.now(UTC).replace(microsecond=0)
    url = reports.signed_url("job/1/profile.0.zip", "mine.zip", "application/zip", 90)

    query = parse_qs(urlsplit(url).query)
    assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
    assert query["X-Amz-Expires"] == ["90"]
    signed_at = datetime.strptime(query["X-Amz-Date"][0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    assert before <= signed_at <= datetime.now(UTC)
    assert signature_in(url) == aws_signature(url)
    for true, forged in (
        ("profile.0.zip", "profile.1.zip"),
        ("X-Amz-Expires=90", "X-Amz-Expires=900"),
        ("mine.zip", "yours.zip"),
    ):
        assert true in url
        tampered = url.replace(true, forged)
        assert signature_in(tampered) != aws_signature(tampered)


def test_threads_have_connections_of_their_own_and_share_what_is_large(reports):
    """FR-21: a session of each thread's own cost 17 MB of memory."""
    with ThreadPoolExecutor(4) as threads:
        barrier = Barrier(4)

        def connect(_):
            barrier.wait()
            return reports.connection

        connections = list(threads.map(connect, range(4)))

    services = [each.meta.client.meta.service_model for each in connections]
    assert len({id(each) for each in connections}) == 4
    assert len({id(each._service_description) for each in services}) == 1


def storage_file(size: int, byte: bytes = b"\0"):
    import io

    return io.BytesIO(byte * size)


def test_reports_in_s3_are_verified_and_what_no_row_names_is_found(reports, s3, make_file, job):
    kept, damaged, missing, extra = (
        store_artifact(job, name, path, **facts)
        for name in ("a", "b", "c", "d")
        for path, facts in [make_file(b"content", name)]
    )
    s3.client().put_object(Bucket=BUCKET, Key=damaged.file.name, Body=b"CONTENT")
    s3.client().delete_object(Bucket=BUCKET, Key=missing.file.name)
    Artifact.objects.filter(pk=extra.pk).delete()
    Job.objects.update(status=JobStatus.CANCELLED, finished_at=timezone.now())
    out = StringIO()

    with pytest.raises(CommandError, match="1 files have no row"):
        call_command("verify_reports", stdout=out)

    told = dict(line.split(": ", 1) for line in out.getvalue().splitlines())
    assert told.keys() == {str(damaged), str(missing), str(extra)}
    assert (told[str(damaged)], told[str(missing)]) == (
        "its content is another",
        "it is missing",
    )
    assert str(kept) not in told
