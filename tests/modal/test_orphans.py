"""Runs that no row may know, because a crash came between the send and the save (FR-30)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from runners.exceptions import RunnerFault
from tests.modal.conftest import as_cbor

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def unclaimed(modal, since=LONG_AGO):
    return modal.wait(modal.runner.unclaimed(since))


def test_runs_that_wait_or_run_are_found_and_those_at_their_end_are_not(modal):
    waiting, running, done, cancelled = (modal.start() for _ in range(4))
    modal.fake.change_call(running, started_at=1.0)
    modal.fake.finish(done, as_cbor(b""))
    modal.wait(modal.runner.cancel(cancelled))

    found = unclaimed(modal)

    assert {run.external_id for run in found} == {waiting, running}
    assert all(abs(run.started_at - datetime.now(UTC)) < timedelta(minutes=1) for run in found)


def test_only_runs_after_the_time_asked_for_are_named(modal):
    old, new = modal.start(), modal.start()
    modal.fake.change_call(old, enqueued_at=(LONG_AGO - timedelta(days=1)).timestamp())

    assert [run.external_id for run in unclaimed(modal)] == [new]


def test_a_start_whose_answer_was_lost_is_among_them(modal):
    modal.fake.fault("FunctionMap", "UNAVAILABLE", after=True, times=-1)
    modal.fault_of_start()
    modal.fake.clear_faults()

    assert [run.external_id for run in unclaimed(modal)] == [modal.fake.calls()[0]["id"]]


def test_more_calls_than_can_be_looked_at_are_no_proof_that_nothing_runs(modal, monkeypatch):
    for module in ("modal_client", "modal_runner"):
        monkeypatch.setattr(f"runners.backends.{module}.CALLS_TAIL", 3)
    for _ in range(3):
        modal.start()

    with pytest.raises(RunnerFault) as caught:
        unclaimed(modal)

    assert (caught.value.kind, caught.value.retryable) == ("modal_calls_uncounted", True)
    assert len(unclaimed(modal, datetime.now(UTC) + timedelta(minutes=1))) == 0


def test_an_outage_is_no_proof_that_nothing_runs(modal):
    modal.fake.fault("FunctionCallFetch", "UNAVAILABLE", times=-1)

    with pytest.raises(RunnerFault) as caught:
        unclaimed(modal)

    assert caught.value.retryable
