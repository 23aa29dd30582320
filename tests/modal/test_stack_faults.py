"""kill -9 and freezing of each part at each phase: every accepted request ends well, once.

FR-24, FR-30. Real processes throughout; a job's run lasts some seconds, so that there is a middle.
"""

from __future__ import annotations

import signal
import time

import pytest

from tests.modal.postgres import Postgres
from tests.modal.stack import Stack, slow_ncu
from tests.server.popcorn import form
from tests.server.service import wait_for

# Some minutes of real processes: with the other services, though it brings its own.
pytestmark = [pytest.mark.services, pytest.mark.xdist_group("stack")]

SUBMISSION = b"def custom_kernel(rows):\n    return [sum(row) for row in rows]\n"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    made = Stack(tmp_path_factory.mktemp("faults") / "stack", Postgres())
    try:
        made.prepare().start_web()
        yield made
    finally:
        made.close()


@pytest.fixture
def stack(whole: Stack):
    """Everything runs; a dispatcher of the test's own."""
    whole.modal.clear_faults()
    slow_ncu(whole.tools, 0)
    whole.start_dispatcher()
    yield whole
    whole.stop("dispatcher", signal.SIGKILL)


def submit(stack: Stack) -> str:
    """The id of a request that was accepted; one benchmark, nobody waits for the stream."""
    with stack.client(stack.cli_id) as client:
        answer = client.post(
            "/profile/rowsum_cpu/L4",
            headers={"Prefer": "respond-async"},
            **form(SUBMISSION, benchmark_index=0),
        )
    assert answer.status_code == 202, answer.text
    return answer.headers["Location"].rstrip("/").rpartition("/")[2]


def job_of(stack: Stack, request_id: str) -> dict:
    (job,) = stack.rows(
        "select j.* from runners_job j join profiling_profilerequest r on r.job_id = j.id"
        " where r.id = ?",
        request_id,
    )
    return job


def until(stack: Stack, request_id: str, *statuses: str, seconds: float = 120) -> dict:
    def reached():
        job = job_of(stack, request_id)
        return job if job["status"] in statuses else None

    return wait_for(reached, seconds)


def until_running_in_its_container(stack: Stack, request_id: str) -> str:
    call_id = until(stack, request_id, "running")["external_id"]
    stack.modal.wait_for(
        lambda state: any(c["id"] == call_id and c["started_at"] for c in state["calls"])
    )
    return call_id


def end_well(stack: Stack, request_id: str, *, attempt: int = 1) -> dict:
    job = until(stack, request_id, "succeeded", "failed", "timed_out", "cancelled")
    assert (job["status"], job["attempt"]) == ("succeeded", attempt), stack.log("dispatcher")
    stored = stack.rows("select file from runners_artifact where job_id = ?", job["id"])
    kept = stack.s3.keys()
    assert [each["file"] in kept for each in stored] == [True]
    return job


def calls_of(stack: Stack, since: float) -> list[dict]:
    return [call for call in stack.modal.calls() if call["enqueued_at"] >= since]


def test_a_dispatcher_killed_while_a_job_runs_is_followed_by_one_that_collects_it(stack):
    slow_ncu(stack.tools, 4)
    began = time.time()
    request = submit(stack)
    until_running_in_its_container(stack, request)

    stack.stop("dispatcher", signal.SIGKILL)
    stack.start_dispatcher()

    end_well(stack, request)
    assert len(calls_of(stack, began)) == 1


def test_a_dispatcher_killed_between_send_and_save_leaves_an_orphan_that_is_ended(stack):
    """FR-30: never two runs of one job at once."""
    began = time.time()
    slow_ncu(stack.tools, 2)
    stack.modal.fault("FunctionMap", after=True, delay_s=5)
    request = submit(stack)
    stack.modal.wait_for(lambda state: any(c["enqueued_at"] >= began for c in state["calls"]))

    stack.stop("dispatcher", signal.SIGKILL)
    assert job_of(stack, request)["status"] == "starting"
    # It finishes long after the next dispatcher could have begun again.
    slow_ncu(stack.tools, 300)
    stack.start_dispatcher()
    stack.modal.wait_for(
        lambda state: any(c["cancelled"] for c in state["calls"] if c["enqueued_at"] >= began), 60
    )
    slow_ncu(stack.tools, 0)

    end_well(stack, request, attempt=2)
    orphan, second = sorted(calls_of(stack, began), key=lambda call: call["enqueued_at"])
    assert (orphan["terminated_containers"], second["cancelled"]) == (True, False)


def test_a_dispatcher_killed_while_it_collects_leaves_one_artifact(stack):
    stack.s3.freeze()
    request = submit(stack)
    until(stack, request, "collecting")

    stack.stop("dispatcher", signal.SIGKILL)
    stack.s3.thaw()
    stack.start_dispatcher()

    end_well(stack, request)


def test_a_provider_killed_while_a_job_runs_gives_its_result_afterwards(stack):
    slow_ncu(stack.tools, 4)
    began = time.time()
    request = submit(stack)
    until_running_in_its_container(stack, request)

    stack.modal.kill()
    time.sleep(3)
    stack.modal.start()

    end_well(stack, request)
    assert len(calls_of(stack, began)) == 1


def test_a_provider_that_is_away_at_the_start_gets_the_job_later_and_once(stack):
    began = time.time()
    stack.modal.kill()
    request = submit(stack)
    until(stack, request, "starting")
    time.sleep(2)

    stack.modal.start()

    job = until(stack, request, "succeeded", "failed")
    assert job["status"] == "succeeded", stack.log("dispatcher")
    alive = [call for call in calls_of(stack, began) if not call["cancelled"]]
    assert len(alive) == 1


def test_a_provider_frozen_while_a_job_runs_is_waited_for(stack):
    slow_ncu(stack.tools, 3)
    request = submit(stack)
    until_running_in_its_container(stack, request)

    stack.modal.freeze()
    time.sleep(8)
    assert job_of(stack, request)["status"] == "running"
    stack.modal.thaw()

    end_well(stack, request)


def test_a_provider_frozen_at_the_start_does_not_hold_the_others(stack):
    """What can be done without it goes on: cancelling what waits, and the web."""
    stack.modal.freeze()
    request = submit(stack)
    until(stack, request, "starting")
    with stack.client(stack.cli_id) as client:
        cancelled = client.post(f"/api/profile-requests/{request}/cancel/")
    stack.modal.thaw()

    assert cancelled.is_success, cancelled.text
    assert until(stack, request, "cancelled")


def test_s3_away_in_the_middle_of_an_upload_costs_no_capture(stack):
    """FR-21, FR-32: the job waits, its result is not lost, and one object is stored."""
    began = time.time()
    stack.s3.kill()
    request = submit(stack)
    until(stack, request, "collecting")
    time.sleep(2)
    assert job_of(stack, request)["status"] == "collecting"

    stack.s3.start()

    end_well(stack, request)
    assert len(calls_of(stack, began)) == 1


def test_a_database_killed_while_a_job_runs_comes_back_to_its_result(stack):
    slow_ncu(stack.tools, 4)
    began = time.time()
    request = submit(stack)
    until_running_in_its_container(stack, request)

    stack.postgres.kill()
    time.sleep(6)
    stack.postgres.start()

    end_well(stack, request)
    assert len(calls_of(stack, began)) == 1


def test_a_database_frozen_while_a_job_runs_is_waited_for(stack):
    slow_ncu(stack.tools, 3)
    began = time.time()
    request = submit(stack)
    until_running_in_its_container(stack, request)

    stack.postgres.freeze()
    time.sleep(8)
    stack.postgres.thaw()

    end_well(stack, request)
    assert len(calls_of(stack, began)) == 1


def test_a_database_killed_between_send_and_save_leaves_one_run_at_most(stack):
    began = time.time()
    stack.modal.fault("FunctionMap", after=True, delay_s=3)
    request = submit(stack)
    stack.modal.wait_for(lambda state: any(c["enqueued_at"] >= began for c in state["calls"]))

    stack.postgres.kill()
    time.sleep(5)
    stack.postgres.start()

    job = until(stack, request, "succeeded", "failed")
    assert job["status"] == "succeeded", stack.log("dispatcher")
    collected = [c for c in calls_of(stack, began) if c["id"] == job["external_id"]]
    others = [c for c in calls_of(stack, began) if c["id"] != job["external_id"]]
    assert len(collected) == 1
    assert all(call["cancelled"] for call in others)


def test_a_dispatcher_that_was_frozen_finds_its_job_in_other_hands(stack):
    slow_ncu(stack.tools, 6)
    began = time.time()
    request = submit(stack)
    until_running_in_its_container(stack, request)

    with stack.another_dispatcher_while_the_first_is_frozen():
        end_well(stack, request)
    time.sleep(2)

    end_well(stack, request)
    assert len(calls_of(stack, began)) == 1


def test_cancelling_a_running_job_ends_its_container(stack):
    slow_ncu(stack.tools, 300)
    request = submit(stack)
    call_id = until_running_in_its_container(stack, request)

    with stack.client(stack.cli_id) as client:
        assert client.post(f"/api/profile-requests/{request}/cancel/").is_success

    until(stack, request, "cancelled")
    stack.modal.wait_for(
        lambda state: any(c["id"] == call_id and c["terminated_containers"] for c in state["calls"])
    )


def test_a_result_that_comes_after_the_cancel_changes_nothing(stack):
    slow_ncu(stack.tools, 300)
    request = submit(stack)
    call_id = until_running_in_its_container(stack, request)
    with stack.client(stack.cli_id) as client:
        client.post(f"/api/profile-requests/{request}/cancel/")
    until(stack, request, "cancelled")

    stack.modal.finish(call_id, b"\x41x")
    time.sleep(2)

    job = job_of(stack, request)
    assert job["status"] == "cancelled"
    assert stack.rows("select * from runners_artifact where job_id = ?", job["id"]) == []
