from __future__ import annotations

import hashlib
from io import StringIO

import pytest
from django.core.files.storage import storages
from django.core.management import CommandError, call_command
from django.utils import timezone

from runners.artifacts import (
    ArtifactConflict,
    ArtifactGone,
    StorageUnavailable,
    open_artifact,
    store_artifact,
)
from runners.models import Artifact
from runners.states import JobStatus
from runners.storage import DurableFileStorage
from runners.transitions import move

pytestmark = pytest.mark.django_db


@pytest.fixture
def reports(settings, tmp_path):
    """The local storage, in a folder of the test."""
    settings.STORAGES = settings.STORAGES | {
        "reports": {
            "BACKEND": "runners.storage.DurableFileStorage",
            "OPTIONS": {"location": tmp_path / "reports", "base_url": None},
        }
    }
    return tmp_path / "reports"


@pytest.fixture
def store(reports, tmp_path):
    def store(job, content: bytes, name: str = "profile.0.zip") -> Artifact:
        path = tmp_path / "spooled"
        path.write_bytes(content)
        sha256 = hashlib.sha256(content).hexdigest()
        return store_artifact(
            job, name, path, size=len(content), sha256=sha256, content_type="application/zip"
        )

    return store


def use_storage(settings, name: str) -> None:
    reports = settings.STORAGES["reports"] | {"BACKEND": f"tests.runners.storages.{name}"}
    settings.STORAGES = settings.STORAGES | {"reports": reports}


def content_of(artifact: Artifact) -> bytes:
    with open_artifact(artifact) as stored:
        return stored.read()


def files_below(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_files_of_two_jobs_with_one_name_stay_apart(store, add_job):
    """FR-32."""
    first, second = add_job(), add_job()

    of_first, of_second = store(first, b"one"), store(second, b"two")

    assert (content_of(of_first), content_of(of_second)) == (b"one", b"two")
    assert of_first.file.name == f"{first.pk}/1/profile.0.zip"


def test_storing_again_leaves_one_file_and_one_row(store, add_job, reports):
    """FR-32: the retry after a crash."""
    job = add_job()
    once, again = store(job, b"one"), store(job, b"one")

    assert once == again
    assert files_below(reports) == [f"{job.pk}/1/profile.0.zip"]


def test_a_stored_artifact_is_never_replaced_by_other_content(store, add_job):
    """FR-32: it is immutable."""
    job = add_job()
    artifact = store(job, b"one")

    with pytest.raises(ArtifactConflict):
        store(job, b"other")

    assert content_of(artifact) == b"one"


@pytest.mark.parametrize("left", [b"on", b"xxx"], ids=["cut", "of the same size"])
def test_what_a_crash_left_under_the_key_is_replaced(store, add_job, reports, left):
    """FR-32: a file counts only with its size and sha256."""
    job = add_job()
    key = reports / str(job.pk) / "1" / "profile.0.zip"
    key.parent.mkdir(parents=True)
    key.write_bytes(left)

    assert content_of(store(job, b"one")) == b"one"


def test_a_file_that_a_crash_left_whole_is_not_written_again(store, add_job, reports):
    job = add_job()
    store(job, b"one")
    Artifact.objects.all().delete()
    key = reports / str(job.pk) / "1" / "profile.0.zip"
    before = key.stat().st_ino

    store(job, b"one")

    assert key.stat().st_ino == before


def test_a_write_that_fails_leaves_nothing(reports):
    class Broken:
        def chunks(self, size):
            yield b"some"
            raise OSError("the disk is full")

    storage = DurableFileStorage(location=reports)
    with pytest.raises(OSError, match="full"):
        storage._save("a/1/x.zip", Broken())

    assert files_below(reports) == []


def test_a_storage_that_is_slow_to_show_new_objects_keeps_all_apart(store, add_job, settings):
    """FR-32: as object storages are that overwrite."""
    use_storage(settings, "ForgetfulStorage")
    first, second = add_job(), add_job()
    artifacts = [store(first, b"one"), store(second, b"two")]
    Artifact.objects.filter(pk=artifacts[0].pk).delete()

    again = store(first, b"one")

    assert [content_of(artifact) for artifact in (again, artifacts[1])] == [b"one", b"two"]
    assert len(files_below(settings.STORAGES["reports"]["OPTIONS"]["location"])) == 2


def test_an_object_storage_that_is_away_is_a_503(store, add_job, settings):
    artifact = store(add_job(), b"one")
    use_storage(settings, "UnreachableStorage")

    with pytest.raises(StorageUnavailable):
        open_artifact(artifact)
    with pytest.raises(StorageUnavailable):
        store(add_job(), b"two")


def test_a_storage_that_does_not_answer_is_a_503_and_no_row(store, add_job, reports):
    reports.parent.mkdir(exist_ok=True)
    reports.write_text("a file where the folder should be")

    with pytest.raises(StorageUnavailable) as raised:
        store(add_job(), b"one")

    assert (raised.value.http_status, raised.value.retry_after) == (503, 30)
    assert not Artifact.objects.exists()


def test_a_file_that_is_gone_is_told_from_a_storage_that_is_away(store, add_job, reports):
    artifact = store(add_job(), b"one")
    (reports / artifact.file.name).unlink()
    with pytest.raises(ArtifactGone):
        open_artifact(artifact)

    artifact.purged_at = timezone.now()

    with pytest.raises(ArtifactGone, match="removed"):
        open_artifact(artifact)


def find_orphans(*options):
    out = StringIO()
    call_command("find_orphan_files", *options, stdout=out, stderr=StringIO())
    return out.getvalue().split()


def test_files_without_a_row_are_found_and_removed_only_when_asked(store, add_job, reports):
    """FR-32: killed between storing the object and saving its row."""
    job, running = add_job(), add_job()
    kept = store(job, b"one")
    lost = store(job, b"two", "profile.1.zip")
    Artifact.objects.filter(pk=lost.pk).delete()
    store(running, b"three")
    Artifact.objects.filter(job=running).delete()
    move(job, JobStatus.CANCELLED, actor_label="alice")
    (reports / "somebody-elses").mkdir()
    (reports / "somebody-elses" / "file").write_text("x")

    assert find_orphans() == [lost.file.name]
    assert storages["reports"].exists(lost.file.name)
    assert find_orphans("--delete") == [lost.file.name]

    assert find_orphans() == []
    assert content_of(kept) == b"one"
    assert (reports / str(running.pk) / "1" / "profile.0.zip").exists()


def verify(*options):
    """Lines of the listing, and the final error."""
    out, ended = StringIO(), ""
    try:
        call_command("verify_reports", *options, stdout=out)
    except CommandError as error:
        ended = f"{error.returncode}: {error}"
    return out.getvalue().splitlines(), ended


def test_missing_damaged_and_extra_files_are_told_apart(store, add_job, reports):
    job = add_job()
    good, cut, other, missing, extra, purged = (
        store(job, b"content", f"profile.{number}.zip") for number in range(6)
    )
    (reports / cut.file.name).write_bytes(b"cont")
    (reports / other.file.name).write_bytes(b"CONTENT")
    (reports / missing.file.name).unlink()
    Artifact.objects.filter(pk=extra.pk).delete()
    Artifact.objects.filter(pk=purged.pk).update(purged_at=timezone.now())
    move(job, JobStatus.CANCELLED, actor_label="alice")

    lines, ended = verify()

    assert lines[:3] == [
        f"{cut}: it has 4 bytes in place of 7",
        f"{other}: its content is another",
        f"{missing}: it is missing",
    ]
    assert sorted(line.split(":")[0] for line in lines[3:]) == [str(extra), str(purged)]
    assert ended == "1: 3 of 4 files are not what was stored; 2 files have no row"
    assert str(good) not in "\n".join(lines)
    assert verify("--since", "2999-01-01T00:00") == (["0 files are what was stored"], "")


def test_files_without_a_row_alone_are_no_damage(store, add_job):
    job = add_job()
    store(job, b"one", "profile.0.zip")
    extra = store(job, b"two", "profile.1.zip")
    Artifact.objects.filter(pk=extra.pk).delete()
    move(job, JobStatus.CANCELLED, actor_label="alice")

    lines, ended = verify()

    assert [line.split(":")[0] for line in lines] == [str(extra)]
    assert ended == "3: 1 files have no row"


def test_a_storage_in_order_verifies_and_one_that_is_away_does_not(store, add_job, reports):
    artifact = store(add_job(), b"one")
    assert verify() == (["1 files are what was stored"], "")
    reports.rename(reports.with_name("elsewhere"))
    reports.write_text("a file where the folder should be")

    lines, ended = verify("--since", "2000-01-01T00:00")

    assert lines == [
        f"{artifact}: it cannot be read: The storage of reports does not answer; try again later."
    ]
    assert ended == "1: 1 of 1 files are not what was stored"
