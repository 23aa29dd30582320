"""A job is called, waited for and collected, and nothing of its result is decoded on the way."""

from __future__ import annotations

import asyncio
import base64
import os
import resource
import time

from runners.backends.base import Finished, Pending
from runners.backends.modal_runner import ModalRunner
from runners.gpu import envelope
from runners.gpu.contract import read_config
from tests.modal.conftest import CONFIG, as_cbor, make_envelope

KIB = 2**10


def test_a_job_travels_as_its_config_and_comes_back_as_its_envelope(modal, tmp_path):
    call_id = modal.start()
    assert modal.poll(call_id) == Pending()
    body = make_envelope(tmp_path, b"an archive")
    modal.fake.finish(call_id, as_cbor(body))

    finished = modal.collect(call_id)

    assert isinstance(finished, Finished)
    assert finished.envelope.read_bytes() == body
    assert envelope.read(finished.envelope).outcome.job_id == "job-1"
    sent = base64.b64decode(modal.fake.call(call_id)["input"]["args"])
    assert modal.fake.call(call_id)["input"]["dataFormat"] == "DATA_FORMAT_CBOR"
    assert read_config(sent[sent.index(b"{") : sent.rindex(b"}") + 1]) == CONFIG


def test_a_large_config_and_a_large_result_go_by_blob(modal, tmp_path):
    config = CONFIG.__class__(
        **{f: getattr(CONFIG, f) for f in CONFIG.__dataclass_fields__}
        | {"sources": {"eval.py": "#" * 100_000, "submission.py": "pass"}}
    )
    call_id = modal.start(config=config)
    body = make_envelope(tmp_path, b"x" * 200 * KIB)
    modal.fake.finish_with_blob(call_id, as_cbor(body))

    assert "argsBlobId" in modal.fake.call(call_id)["input"]
    assert modal.collect(call_id).envelope.read_bytes() == body


def test_a_byte_string_of_any_length_is_taken_whole(modal):
    for size in (0, 1, 23, 24, 255, 256, 65_535, 65_536, 3_000_000):
        call_id = modal.start()
        modal.fake.finish_with_blob(call_id, as_cbor(bytes(size)))

        assert modal.collect(call_id).envelope.stat().st_size == size


def test_news_ends_the_wait_at_once(modal, tmp_path, monkeypatch):
    monkeypatch.setattr("runners.backends.modal_runner.POLL_WAIT_S", 50)
    call_id = modal.start()
    body = make_envelope(tmp_path)

    async def poll_while_it_ends():
        poll = asyncio.create_task(modal.runner.poll(call_id))
        await asyncio.sleep(0.3)
        await asyncio.to_thread(modal.fake.finish, call_id, as_cbor(body))
        return await asyncio.wait_for(poll, 20)

    assert isinstance(modal.wait(poll_while_it_ends()), Finished)


def test_a_result_is_collected_again_after_a_crash_and_goes_with_its_release(modal, tmp_path):
    call_id = modal.start()
    modal.fake.finish(call_id, as_cbor(make_envelope(tmp_path)))
    first = modal.collect(call_id)
    asked = modal.fake.state()["counts"]["FunctionGetOutputs"]

    again = modal.poll(call_id)

    assert again == first
    assert modal.fake.state()["counts"]["FunctionGetOutputs"] == asked
    modal.wait(modal.runner.release(call_id))
    modal.wait(modal.runner.release(call_id))
    assert modal.spooled() == []
    assert modal.collect(call_id) == first, "it is still kept at the provider"


def test_cancelling_ends_containers_and_is_no_error_twice_or_for_an_unknown_run(modal):
    call_id = modal.start()

    for external_id in (call_id, call_id, "fc-unknown"):
        modal.wait(modal.runner.cancel(external_id))

    call = modal.fake.call(call_id)
    assert call["cancelled"]
    assert call["terminated_containers"]
    assert modal.fault_of_poll(call_id).kind == "modal_cancelled"


def test_a_hundred_megabytes_are_collected_in_constant_memory(modal):
    """FR-21."""
    call_id = modal.start()
    size = 100 * 2**20
    head = as_cbor(bytes(2**17))[:1] + size.to_bytes(4)
    modal.fake.finish_with_blob(call_id, size=size + 5, head=head.hex())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    finished = modal.collect(call_id)

    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * KIB
    assert finished.envelope.stat().st_size == size
    assert grown < 64 * 2**20


def test_the_queue_depth_is_what_was_known_and_nobody_waits_for_it(modal):
    modal.start()
    modal.fake.freeze()

    assert modal.wait(modal.runner.queue_depth("B200")) is None

    modal.fake.thaw()

    async def until_known():
        async with asyncio.timeout(20):
            while (depth := await modal.runner.queue_depth("B200")) is None:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        return depth

    assert modal.wait(until_known()) == 1
    assert modal.fake.state()["counts"]["FunctionGetCurrentStats"] == 1


def test_a_slow_download_is_told_as_progress_and_ends_with_the_release(modal):
    """FR-21: no poll waits for minutes, and none begins it again."""
    call_id = modal.start()
    head = (b"\x5a" + (2**20).to_bytes(4)).hex()
    modal.fake.finish_with_blob(call_id, size=2**20 + 5, head=head, pace_s=1)

    first, second = modal.poll(call_id), modal.poll(call_id)

    assert first == second == Pending("fetching the result from the GPU provider")
    assert modal.fake.state()["counts"]["BlobGet"] == 1
    modal.wait(modal.runner.release(call_id))
    assert modal.spooled() == []


def test_more_runs_than_one_connection_carries_are_waited_for_all_at_once(modal, monkeypatch):
    """A server bounds the requests that are open on a connection: the fake's bound is 100."""
    monkeypatch.setattr("runners.backends.modal_runner.POLL_WAIT_S", 2)
    call_ids = [modal.start() for _ in range(150)]

    async def poll_all():
        began = time.monotonic()
        news = await asyncio.gather(*(modal.runner.poll(call_id) for call_id in call_ids))
        return news, time.monotonic() - began

    news, took = modal.wait(poll_all())

    assert news == [Pending()] * 150
    assert took < 3.9, "two rounds of two seconds would be one after the other"


def test_what_a_killed_dispatcher_left_is_swept_away_after_a_week(modal):
    young, old = modal.runner.spool_dir / "fc-a.part", modal.runner.spool_dir / "fc-b.envelope"
    for path in (young, old):
        path.touch()
    os.utime(old, (0, time.time() - 8 * 24 * 3600))

    ModalRunner()

    assert modal.spooled() == [young]
