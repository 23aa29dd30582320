"""What a container sends after it ran a stranger's code: nothing of it runs code or fills a disk.

FR-25: only plain bytes cross the border, and nothing is unpickled.
"""

from __future__ import annotations

import base64
import logging
import pickle
from pathlib import Path

import cbor2
import pytest
from modal_proto import api_pb2

from runners.backends import modal_results
from runners.dispatcher.no_pickle import forbid_unpickling
from tests.modal.conftest import as_cbor, make_envelope

STATUSES = [
    name
    for name in api_pb2.GenericResult.GenericStatus.keys()  # noqa: SIM118
    if name != "GENERIC_STATUS_UNSPECIFIED"
]
FORMATS = ["DATA_FORMAT_UNSPECIFIED", "DATA_FORMAT_PICKLE", "DATA_FORMAT_GENERATOR_DONE"]


class Owned:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("data_format", FORMATS)
def test_no_pickle_is_loaded_whatever_status_it_comes_with(modal, tmp_path, data_format):
    """FR-25."""
    mark = tmp_path / "owned"
    bomb = base64.b64encode(pickle.dumps(Owned(mark))).decode()

    for status in STATUSES:
        call_id = modal.start()
        result = {"status": status, "data": bomb, "serializedTb": bomb, "tbLineCache": bomb}
        modal.fake.finish(call_id, result=result, dataFormat=data_format)

        fault = modal.fault_of_poll(call_id)

        assert "pickle" not in str(fault)
        if status == "GENERIC_STATUS_SUCCESS":
            assert fault.kind == "modal_bad_result"
    assert modal.spooled() == []
    assert not mark.exists()
    pickle.loads(base64.b64decode(bomb))
    assert mark.exists(), "the bomb itself works"


def test_the_bomb_would_go_off_in_the_clients_own_reader(modal, tmp_path):
    """FR-25. Why `FunctionCall.get()` is never called; it also fails when Modal mends it."""
    import modal as client

    mark = tmp_path / "owned"
    call_id = modal.start()
    bomb = base64.b64encode(pickle.dumps(Owned(mark))).decode()
    modal.fake.finish(
        call_id,
        result={"status": "GENERIC_STATUS_SUCCESS", "data": bomb},
        dataFormat="DATA_FORMAT_PICKLE",
    )

    async def get():
        connected = await modal.runner.client._client()
        return await client.FunctionCall.from_id(call_id, client=connected).get.aio(timeout=5)

    modal.wait(get())

    assert mark.exists()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x05K\x01.",  # a pickle under the label of CBOR
        cbor2.dumps("text"),
        cbor2.dumps({"a": b"map"}),
        cbor2.dumps([b"list"]),
        cbor2.dumps(7),
        cbor2.dumps(None),
        b"\xd8\x18" + cbor2.dumps(b"tagged"),
        b"\x5f\x41a\x41b\xff",  # a byte string of indefinite length
        b"\x5c\x00",  # a reserved length
        cbor2.dumps(b"shorter than it says")[:-1],
        cbor2.dumps(b"longer than it says") + b"\0",
        b"\x5b" + (2**63).to_bytes(8) + b"huge",
        b"\x5a\x00",  # cut inside its header
    ],
)
def test_only_one_byte_string_of_definite_length_is_a_result(modal, data, caplog):
    """FR-25: its first bytes are in the operator's log only."""
    call_id = modal.start()
    modal.fake.finish(call_id, data)

    fault = modal.fault_of_poll(call_id)

    assert (fault.kind, fault.retryable) == ("modal_bad_result", False)
    assert modal.spooled() == []
    assert any(r.levelno == logging.ERROR and call_id in r.getMessage() for r in caplog.records)


@pytest.mark.parametrize("size", [0, 23, 24, 255, 256, 65_536])
def test_a_header_that_came_in_pieces_says_nothing_until_it_is_whole(size):
    """FR-25: downloads are cut wherever the network cuts them."""
    whole = cbor2.dumps(bytes(size))
    header = len(whole) - size

    for cut in range(header):
        assert modal_results.byte_string_head(whole[:cut], 2**20) is None
    assert modal_results.byte_string_head(whole[:header], 2**20) == (header, size)


def test_a_result_above_the_cap_is_not_even_fetched(modal, modal_settings):
    """FR-21."""
    modal_settings.ENVELOPE_MAX_BYTES = 2**20
    head = (b"\x5a" + (2**30).to_bytes(4)).hex()
    for serving in ({"size": 2**30, "head": head}, {"size": 2**30, "head": head, "claimed": None}):
        call_id = modal.start()
        modal.fake.finish_with_blob(call_id, **serving)

        assert modal.fault_of_poll(call_id).kind == "modal_bad_result"
    assert modal.spooled() == []


def test_an_endless_download_ends_at_the_length_that_was_announced(modal, modal_settings):
    modal_settings.ENVELOPE_MAX_BYTES = 2**20
    call_id = modal.start()
    # It says 16 bytes in its header, and goes on.
    modal.fake.finish_with_blob(call_id, size=900_000, head="50")

    assert modal.fault_of_poll(call_id).kind == "modal_bad_result"
    assert modal.spooled() == []


def test_a_result_waits_at_the_provider_while_there_is_no_room_for_it(modal, tmp_path, monkeypatch):
    call_id = modal.start()
    modal.fake.finish(call_id, as_cbor(make_envelope(tmp_path)))
    monkeypatch.setattr(modal_results, "DISK_RESERVE_BYTES", 2**62)

    fault = modal.fault_of_poll(call_id)

    assert (fault.kind, fault.retryable) == ("spool_full", True)
    monkeypatch.undo()
    assert modal.collect(call_id).envelope.exists()


def test_text_of_a_container_reaches_the_log_cut_and_escaped_and_nobody_else(modal, caplog):
    call_id = modal.start()
    hostile = "\x1b[2J<script>alert(1)</script>\n" + "x" * 10_000
    modal.fake.finish(
        call_id,
        result={"status": "GENERIC_STATUS_FAILURE", "exception": hostile, "traceback": hostile},
    )

    fault = modal.fault_of_poll(call_id)

    assert "script" not in str(fault)
    logged = next(r.getMessage() for r in caplog.records if "FAILURE" in r.getMessage())
    assert "\x1b" not in logged
    assert "\n" not in logged
    assert len(logged) < 1000


@pytest.mark.parametrize("external_id", ["../../etc/passwd", "fc-../x", "", "fc-a/b", "fc-é\0"])
def test_an_id_is_never_a_path(modal, external_id):
    assert modal.fault_of_poll(external_id).kind == "run_lost"


def test_the_dispatchers_hook_stops_what_would_still_unpickle():
    """FR-25. In a child, since the hook cannot be taken away again."""
    import subprocess
    import sys

    program = (
        "from runners.dispatcher.no_pickle import forbid_unpickling; forbid_unpickling()\n"
        "import pickle; pickle.loads(b'cbuiltins\\nprint\\n(Vowned\\ntR.')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert forbid_unpickling.__module__ == "runners.dispatcher.no_pickle"
    assert "owned" not in done.stdout
    assert "unpickling builtins.print is forbidden" in done.stderr
