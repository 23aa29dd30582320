"""Envelopes that a hostile container made, through the whole service: no other row changes."""

from __future__ import annotations

import base64
import pickle
import zipfile
from dataclasses import replace
from pathlib import Path

import cbor2
import pytest

from tests.modal.by_hand import ByHand
from tests.modal.test_hostile_results import Owned

# A minute of real processes: with the other services, though it brings its own.
pytestmark = [pytest.mark.services, pytest.mark.xdist_group("forged")]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    made = ByHand(tmp_path_factory.mktemp("forged"))
    try:
        made.prepare()
        made.start_web()
        made.start_dispatcher()
        yield made
    finally:
        made.close()


@pytest.fixture(autouse=True)
def goes_on(service):
    """After whatever a test sent, the same dispatcher brings a good result home."""
    dispatcher = service.pid("dispatcher")
    yield
    request, call = service.call_of_new_job()
    service.finish(call, service.archive)
    assert service.wait_until_final(request)["status"] == "succeeded", service.log("dispatcher")
    assert service.pid("dispatcher") == dispatcher


def test_the_result_of_another_run_ends_its_own_job_and_changes_no_other(service):
    request, call = service.call_of_new_job()
    other_request, other_call = service.call_of_new_job()
    stolen = service.envelope_for(service.config_of(other_call), service.archive)

    service.modal.finish(call["id"], cbor2.dumps(stolen))

    assert service.wait_until_final(request)["status"] == "failed"
    service.finish(other_call, service.archive)
    assert service.wait_until_final(other_request)["status"] == "succeeded"


def test_the_result_of_another_attempt_is_none(service):
    request, call = service.call_of_new_job()
    config = replace(service.config_of(call), attempt=7)

    service.modal.finish(call["id"], cbor2.dumps(service.envelope_for(config, service.archive)))

    facts = service.wait_until_final(request)
    assert facts["status"] == "failed"
    assert facts["error"]["code"] == "bad_envelope", facts


def test_a_pickle_under_any_label_runs_nothing_in_the_dispatcher(service, tmp_path):
    """FR-25."""
    mark = tmp_path / "owned"
    bomb = base64.b64encode(pickle.dumps(Owned(mark))).decode()
    for status in ("SUCCESS", "FAILURE", "TERMINATED", "KERNEL_OOM_KILL"):
        for data_format in ("DATA_FORMAT_PICKLE", "DATA_FORMAT_UNSPECIFIED"):
            request, call = service.call_of_new_job()
            result = {"status": f"GENERIC_STATUS_{status}", "data": bomb, "serializedTb": bomb}
            service.modal.finish(call["id"], result=result, dataFormat=data_format)

            assert service.wait_until_final(request)["status"] == "failed"
    assert not mark.exists()


def test_a_zip_bomb_fills_neither_disk_nor_memory(service, tmp_path):
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("profile.ncu-rep", "w", force_zip64=True) as entry:
            for _ in range(3 * 2**10):
                entry.write(bytes(2**20))
        archive.writestr("ncu-details.txt", "text")
        archive.writestr("ncu-details.csv", "text")
    assert bomb.stat().st_size < 2**22

    request, call = service.call_of_new_job()
    service.finish(call, bomb)

    facts = service.wait_until_final(request)
    assert facts["status"] in ("succeeded", "failed")
    assert all(capture["status"] != "succeeded" for capture in facts["captures"]), facts
    assert peak_mb(service.pid("dispatcher")) < 400
    assert sum(p.stat().st_size for p in service.folder.rglob("*") if p.is_file()) < 2**28


@pytest.mark.parametrize("name", ["../../../evil", "/tmp/evil", "a/../../evil", "evil\0.txt"])
def test_a_path_in_an_archive_is_never_followed(service, tmp_path, name):
    before = set(service.folder.parent.rglob("*evil*"))
    tricky = tmp_path / "tricky.zip"
    with zipfile.ZipFile(tricky, "w") as archive:
        archive.writestr(name, "evil")
        archive.writestr("profile.ncu-rep", "no report")

    request, call = service.call_of_new_job()
    service.finish(call, tricky)

    facts = service.wait_until_final(request)
    assert all(capture["status"] != "succeeded" for capture in facts["captures"]), facts
    assert set(service.folder.parent.rglob("*evil*")) == before
    assert not Path("/tmp/evil").exists()


def test_an_envelope_that_is_cut_or_mixed_up_is_no_result(service):
    _, call = service.call_of_new_job()
    good = service.envelope_for(service.config_of(call), service.archive)
    service.modal.finish(call["id"], cbor2.dumps(good))
    for forged in (b"", good[:100], good[:-1], good + b"x", b"\xff" * 1000, good[4:]):
        request, call = service.call_of_new_job()
        service.modal.finish(call["id"], cbor2.dumps(forged))

        assert service.wait_until_final(request)["status"] == "failed"


def test_text_with_escapes_reaches_nobodys_terminal(service):
    request, call = service.call_of_new_job()
    config = replace(service.config_of(call), job_id="\x1b[2J<script>")

    service.modal.finish(call["id"], cbor2.dumps(service.envelope_for(config, service.archive)))

    facts = service.wait_until_final(request)
    assert "\x1b" not in str(facts)
    assert "script" not in str(facts)
    assert "\x1b" not in service.log("dispatcher")


def peak_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1000
