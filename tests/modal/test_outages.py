"""What each failure of the provider becomes, and that nothing hangs or is started twice."""

from __future__ import annotations

import time

import pytest

from runners.backends.base import RUN_LOST, START_UNKNOWN, Finished, Pending
from runners.backends.modal_runner import ModalRunner
from tests.modal.conftest import as_cbor, make_envelope

FOR_EVER = {"times": -1}
# What a status becomes when it answers the look-up: nothing was started, that is certain.
BEFORE_THE_START = {
    "UNAUTHENTICATED": ("modal_authentication", False),
    "PERMISSION_DENIED": ("modal_permission", False),
    "NOT_FOUND": ("modal_not_deployed", False),
    "INVALID_ARGUMENT": ("modal_refused", False),
    "FAILED_PRECONDITION": ("modal_refused", False),
    "UNIMPLEMENTED": ("modal_refused", False),
    "RESOURCE_EXHAUSTED": ("modal_throttled", True),
    "UNAVAILABLE": ("modal_outage", True),
    "INTERNAL": ("modal_outage", True),
    "DEADLINE_EXCEEDED": ("modal_outage", True),
    "UNKNOWN": ("modal_outage", True),
    "CANCELLED": ("modal_outage", True),
    "ABORTED": ("modal_refused", False),
    "DATA_LOSS": ("modal_outage", True),
    "OUT_OF_RANGE": ("modal_refused", False),
    "ALREADY_EXISTS": ("modal_outage", True),
}
REFUSALS = ("UNAUTHENTICATED", "PERMISSION_DENIED", "INVALID_ARGUMENT", "RESOURCE_EXHAUSTED")
UNCERTAIN = ("UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED", "UNKNOWN")


@pytest.mark.parametrize("status", BEFORE_THE_START)
def test_a_failed_look_up_starts_nothing_and_says_whose_fault_it_is(modal, status):
    """FR-24."""
    modal.fake.fault("FunctionGet", status, **FOR_EVER)

    fault = modal.fault_of_start()

    assert (fault.kind, fault.retryable) == BEFORE_THE_START[status]
    assert "fault of the service" in str(fault)
    assert "planned" not in str(fault), "the provider's own text is for the log"
    assert modal.fake.calls() == []


@pytest.mark.parametrize("status", REFUSALS)
def test_a_refused_call_is_known_not_to_run(modal, status):
    modal.fake.fault("FunctionMap", status, **FOR_EVER)

    fault = modal.fault_of_start()

    assert (fault.kind, fault.retryable) == BEFORE_THE_START[status]


@pytest.mark.parametrize("status", UNCERTAIN)
def test_a_start_whose_answer_was_lost_is_told_as_unknown(modal, status):
    modal.fake.fault("FunctionMap", status, after=True, **FOR_EVER)

    fault = modal.fault_of_start()

    assert (fault.kind, fault.retryable) == (START_UNKNOWN, True)
    assert len(modal.fake.calls()) == 1, "the client's own attempts carry one key"


def test_a_short_outage_is_not_noticed(modal):
    for rpc in ("FunctionGet", "AppGetTags", "FunctionMap", "FunctionGetOutputs"):
        modal.fake.fault(rpc, "UNAVAILABLE", times=2)

    call_id = modal.start()

    assert modal.poll(call_id) == Pending()
    assert len(modal.fake.calls()) == 1


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        ("UNAVAILABLE", "modal_outage", True),
        ("RESOURCE_EXHAUSTED", "modal_throttled", True),
        ("UNAUTHENTICATED", "modal_authentication", False),
        ("PERMISSION_DENIED", "modal_permission", False),
        ("NOT_FOUND", RUN_LOST, False),
    ],
)
def test_a_failed_poll_is_asked_again_or_not(modal, tmp_path, status, kind, retryable):
    """FR-24: nothing is given up that may still be running."""
    call_id = modal.start()
    modal.fake.fault("FunctionGetOutputs", status, **FOR_EVER)

    fault = modal.fault_of_poll(call_id)

    assert (fault.kind, fault.retryable) == (kind, retryable)
    modal.fake.clear_faults()
    modal.fake.finish(call_id, as_cbor(make_envelope(tmp_path)))
    assert isinstance(modal.collect(call_id), Finished)


def test_throttling_with_pacing_is_waited_for_within_bounds(modal):
    modal.fake.fault("FunctionMap", "RESOURCE_EXHAUSTED", retry_after_s=0.3, times=2)
    assert modal.start()

    modal.fake.fault("FunctionGetOutputs", "RESOURCE_EXHAUSTED", retry_after_s=1, **FOR_EVER)
    began = time.monotonic()
    fault = modal.fault_of_poll(modal.fake.calls()[0]["id"])

    assert fault.kind in ("modal_throttled", "modal_outage")
    assert fault.retryable
    assert time.monotonic() - began < 20


def test_five_ways_not_to_get_a_result_are_five_different_failures(modal):
    """FR-24."""
    ids = {name: modal.start() for name in ("pending", "late", "expired", "unknown", "wrong")}
    modal.fake.finish(ids["late"], result={"status": "GENERIC_STATUS_TIMEOUT"})
    modal.fake.change_call(ids["expired"], expired=True)
    wrong = {"status": "GENERIC_STATUS_FAILURE", "exception": "run_job() takes 2 arguments"}
    modal.fake.finish(ids["wrong"], result=wrong)

    told = {name: modal.fault_of_poll(ids[name]) for name in ("late", "expired", "wrong")}
    told["unknown"] = modal.fault_of_poll("fc-unknown")

    assert modal.poll(ids["pending"]) == Pending()
    assert len({str(fault) for fault in told.values()}) == 4
    assert told["late"].kind == "modal_time_limit"
    assert told["wrong"].kind == "modal_run_failed"
    assert {told["expired"].kind, told["unknown"].kind} == {RUN_LOST}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("GENERIC_STATUS_INIT_FAILURE", RUN_LOST),
        ("GENERIC_STATUS_INTERNAL_FAILURE", RUN_LOST),
        ("GENERIC_STATUS_IDLE_TIMEOUT", RUN_LOST),
        ("GENERIC_STATUS_TERMINATED", "modal_cancelled"),
        ("GENERIC_STATUS_MEMORY_MANAGER_EVICTION", "out_of_memory"),
        ("GENERIC_STATUS_MEMORY_THRASHING_EVICTION", "out_of_memory"),
        ("GENERIC_STATUS_KERNEL_OOM_KILL", "out_of_memory"),
    ],
)
def test_each_end_of_a_run_without_a_result_has_its_kind(modal, status, kind):
    call_id = modal.start()
    modal.fake.finish(call_id, result={"status": status})

    fault = modal.fault_of_poll(call_id)

    assert (fault.kind, fault.retryable) == (kind, False)


@pytest.mark.parametrize(
    "serving",
    [
        {"status": 500},
        {"status": 403},
        {"break_after": 2**17},
        {"claimed": 2**19},
        {"stall_after": 2**17},
    ],
    ids=["error", "forbidden", "cut", "short", "stalled"],
)
def test_a_broken_download_is_tried_again_and_leaves_no_half(modal, monkeypatch, caplog, serving):
    monkeypatch.setattr("runners.backends.modal_results.STALL_LIMIT_S", 0.5)
    body = b"\x5a" + (2**18).to_bytes(4)
    call_id = modal.start()
    modal.fake.finish_with_blob(call_id, size=2**18 + 5, head=body.hex(), **serving)

    fault = modal.fault_of_poll(call_id)

    assert fault.retryable
    assert modal.spooled() == []
    assert modal.fake.blob_url not in caplog.text, "its signature would open the result"
    modal.fake.finish_with_blob(call_id, size=2**18 + 5, head=body.hex())
    assert modal.collect(call_id).envelope.stat().st_size == 2**18


def test_a_missing_blob_is_asked_for_again(modal):
    call_id = modal.start()
    result = {"status": "GENERIC_STATUS_SUCCESS", "dataBlobId": "bl-none"}
    modal.fake.finish(call_id, result=result)

    assert modal.fault_of_poll(call_id).kind == RUN_LOST


def test_a_frozen_provider_holds_nobody_for_longer_than_the_deadline(
    modal, modal_settings, monkeypatch
):
    monkeypatch.setattr("runners.backends.modal_client.CALL_LIMIT_S", 1.5)
    modal_settings.START_LIMIT_S = 1.5
    call_id = modal.start()
    modal.fake.freeze()
    began = time.monotonic()

    started, polled = modal.fault_of_start(), modal.fault_of_poll(call_id)

    assert time.monotonic() - began < 15
    assert (started.kind, started.retryable) == (START_UNKNOWN, True)
    assert polled.retryable
    modal.fake.thaw()
    assert modal.poll(call_id) == Pending()


def test_a_provider_that_died_and_came_back_is_found_again(modal, tmp_path):
    call_id = modal.start()
    modal.fake.kill()

    assert modal.fault_of_poll(call_id).retryable
    assert modal.fault_of_start().kind == START_UNKNOWN
    modal.fake.start()

    modal.fake.finish(call_id, as_cbor(make_envelope(tmp_path)))
    assert isinstance(modal.collect(call_id), Finished)


def test_a_first_connection_that_is_refused_is_told_in_time(modal, modal_settings, monkeypatch):
    monkeypatch.setattr("runners.backends.modal_client.CALL_LIMIT_S", 1.5)
    modal.fake.kill()
    modal.runner = ModalRunner()
    began = time.monotonic()

    fault = modal.fault_of_start()

    assert time.monotonic() - began < 15
    assert (fault.kind, fault.retryable) == ("modal_unreachable", True)
    modal.fake.start()
    monkeypatch.setattr("runners.backends.modal_client.CALL_LIMIT_S", 30)
    modal_settings.START_LIMIT_S = 30
    assert modal.start(), "the same attempt to connect went on"
    modal.wait(modal.runner.client.close())


def test_without_a_token_the_operators_are_told(modal, modal_settings):
    modal_settings.MODAL_TOKEN_SECRET = "wrong"
    modal.runner = ModalRunner()

    assert modal.fault_of_start().kind == "modal_authentication"
    modal.wait(modal.runner.client.close())
