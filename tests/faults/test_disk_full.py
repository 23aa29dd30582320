"""A disk that is full, in earnest: a small tmpfs. What was accepted waits, and is told as it is."""

from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import time
from contextlib import contextmanager, suppress

import pytest

from tests.server.database import FILE
from tests.server.popcorn import PATH, Stream, form
from tests.server.service import Service, wait_for

MIB = 2**20


@contextmanager
def small_disk(folder, mebibytes):
    folder.mkdir()
    size = f"size={mebibytes}m,mode=755"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "kernelbot-test", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"a tmpfs cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder):
    """Until nothing more goes; the file to be removed."""
    filler = folder / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as out:
        while out.write(bytes(MIB)) == MIB:
            pass
    with suppress(OSError), filler.open("ab", buffering=0) as out:
        while out.write(bytes(1)):
            pass
    return filler


def submit(service):
    with service.client() as client:
        answer = client.post(PATH, headers={"Prefer": "respond-async"}, **form(benchmark_index="0"))
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    made = Service(tmp_path_factory.mktemp("template")).prepare()
    yield made
    made.stop_all()


@pytest.fixture
def reports(tmp_path):
    with small_disk(tmp_path / "reports", 8) as disk:
        yield disk


@pytest.fixture
def start(tmp_path, reports, template):
    """A service whose reports are on the small disk, with captures of two megabytes."""
    made = []

    def start(**settings):
        folder = tmp_path / "service"
        folder.mkdir()
        service = Service(folder, REPORTS_STORAGE_URL=reports.as_uri(), **settings)
        made.append(service)
        service.prepare(template)
        service.plan(archive=str(service.make_archive(2 * MIB)))
        service.start_web()
        service.start_dispatcher()
        return service

    yield start
    for service in made:
        service.stop_all()


def test_results_wait_for_room_and_none_is_lost(start, reports):
    """FR-32."""
    service = start()
    filler = fill(reports)
    request = submit(service)
    wait_for(lambda: "could not be kept" in service.log("dispatcher"))
    with service.client() as client:
        path = f"/api/profile-requests/{request}/"
        assert client.get(path).json()["status"] == "collecting"
        with client.stream("GET", f"{path}stream/") as response:
            assert Stream(response).next()[1]["job_status"] == "collecting"
        # Others are served meanwhile.
        assert client.get("/leaderboards").status_code == 200
        other = submit(service)

        filler.unlink()

        for each in (request, other):
            assert service.wait_until_final(each)["status"] == "succeeded"
            archive = client.get(f"/api/profile-requests/{each}/captures/0/archive/")
            assert archive.headers["ETag"] == f'"{hashlib.sha256(archive.content).hexdigest()}"'
            assert len(archive.content) > 2 * MIB
    assert len(service.runner.calls("started")) == 2
    assert len([path for path in reports.rglob("*") if path.is_file()]) == 2


def test_a_disk_that_stays_full_is_told_as_our_fault(start, reports):
    service = start(COLLECT_PATIENCE_S=1)
    fill(reports)

    facts = service.wait_until_final(submit(service))

    assert facts["status"] == "failed"
    assert facts["error"]["status_code"] == 503
    assert "nothing is wrong with the submission" in facts["error"]["detail"]
    assert [path.name for path in reports.rglob("*") if path.is_file()] == ["filler"]


def test_where_nothing_can_be_written_orders_are_refused_until_there_is_room(tmp_path, template):
    """Database, reports and temporary files on the one disk that is full."""
    with small_disk(tmp_path / "disk", 48) as disk:
        folder = disk / "service"
        folder.mkdir()
        service = Service(folder, TMPDIR=folder)
        service.prepare(template)
        service.start_web()
        service.start_dispatcher()
        try:
            before = submit(service)
            service.wait_until_final(before)
            # Who opens a file of SQLite first makes another beside it, for which there is no room.
            opened = sqlite3.connect(folder / FILE)
            opened.execute("SELECT 1 FROM sqlite_master").fetchone()
            filler = fill(disk)
            with service.client() as client:
                refused = client.post(PATH, **form())
                read = client.get(f"/api/profile-requests/{before}/")
            time.sleep(1)
            filler.unlink()
            opened.close()

            after = wait_for(lambda: _accepted(service))

            assert service.wait_until_final(after)["status"] == "succeeded"
        finally:
            service.stop_all()
    assert refused.status_code == 503, refused.text
    assert int(refused.headers["Retry-After"]) > 0
    assert read.json()["status"] == "succeeded"


def _accepted(service):
    with service.client() as client:
        answer = client.post(PATH, headers={"Prefer": "respond-async"}, **form(benchmark_index="0"))
        return answer.json()["id"] if answer.status_code == 202 else None
