"""Each part killed and frozen while there is a request in each phase: all end well, once.

FR-24, FR-30, FR-32. Real processes throughout, and for each request a client that holds its stream.
"""

from __future__ import annotations

import hashlib
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from tests.modal.follow import (
    FINAL,
    PATH,
    SUBMISSION,
    calls_for,
    calls_of,
    end_well,
    job_of,
    submit,
    until,
    until_running_in_its_container,
)
from tests.modal.postgres import Postgres
from tests.modal.s3_front import S3Front
from tests.modal.stack import Stack, hold_captures, let_captures_go, make_report, slow_ncu
from tests.server.popcorn import Stream, archives, form

# Some minutes of real processes: with the other services, though it brings its own.
pytestmark = [pytest.mark.services, pytest.mark.xdist_group("stack")]

PHASES = ("collecting", "running", "starting", "queued", "delivering")
# More than the sockets between server and client hold.
LARGE_BYTES = 8 * 2**20
AWAY_S = 3.5  # longer than a lease


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    made = Stack(
        folder / "stack",
        Postgres(),
        s3=S3Front(folder / "hold"),
        max_in_flight=3,
        RETRY_DELAY_S=1,
    )
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


class Held:
    """A request and the client that holds its stream, from now until `end`."""

    def __init__(self, stack: Stack, clients: ExitStack, request_id: str | None = None) -> None:
        # A small window, so that the server cannot be done before the client reads.
        window = [(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)]
        transport = httpx.HTTPTransport(socket_options=window)
        client = clients.enter_context(stack.client(stack.cli_id, transport=transport))
        if request_id is None:
            asked = client.stream("POST", PATH, **form(SUBMISSION, benchmark_index=0))
        else:
            asked = client.stream("GET", f"/api/profile-requests/{request_id}/stream/")
        self.stack = stack
        self.response = clients.enter_context(asked)
        self.stream = Stream(self.response)
        self.stream.next()
        self.id = request_id or self.response.headers["X-Profile-Request"]

    def until(self, status: str) -> dict:
        return until(self.stack, self.id, status)

    def end(self) -> str:
        """How the stream ends: the sha256 of the archive in its result, else its error."""
        name, data = self.stream.last()
        if name != "result":
            return f"{name}: {data}"
        [archive] = archives(data).values()
        return hashlib.sha256(archive).hexdigest()


@pytest.fixture(scope="module")
def large(whole: Stack) -> str:
    """A finished request whose archive takes a while to deliver."""
    make_report(whole.tools, pad_bytes=LARGE_BYTES)
    whole.start_dispatcher()
    try:
        request = submit(whole)
        end_well(whole, request)
    finally:
        whole.stop("dispatcher")
        make_report(whole.tools)
    return request


@pytest.fixture
def in_each_phase(stack: Stack, large: str) -> Iterator[dict[str, Held]]:
    """A request in each of PHASES, where it stays until it is let go."""
    with ExitStack() as clients:
        clients.callback(let_go, stack)
        held = {"delivering": Held(stack, clients, large)}
        stack.s3.hold_uploads()
        held["collecting"] = Held(stack, clients)
        held["collecting"].until("collecting")
        hold_captures(stack.tools)
        held["running"] = Held(stack, clients)
        until_running_in_its_container(stack, held["running"].id)
        began = time.time()
        stack.modal.fault("FunctionMap", after=True, held=True)
        held["starting"] = Held(stack, clients)
        stack.modal.wait_for(lambda state: any(c["enqueued_at"] >= began for c in state["calls"]))
        held["queued"] = Held(stack, clients)
        yield held


def let_go(stack: Stack) -> None:
    stack.s3.let_uploads_go()
    let_captures_go(stack.tools)
    stack.modal.clear_faults()


@contextmanager
def away(stack: Stack, part: str, fault: str) -> Iterator[None]:
    affected = stack.part(part)
    if fault == "killed":
        affected.kill()
        yield
        affected.start()
    else:
        affected.freeze()
        yield
        affected.thaw()


@pytest.mark.parametrize("fault", ["killed", "frozen"])
@pytest.mark.parametrize("part", ["dispatcher", "modal", "s3", "postgres"])
def test_a_request_in_any_phase_ends_well_and_once_when_a_part_is(
    in_each_phase: dict[str, Held], stack: Stack, part: str, fault: str
):
    """FR-21, FR-24, FR-30, FR-32."""
    before = {phase: job_of(stack, held.id) for phase, held in in_each_phase.items()}
    phases = {phase: job["status"] for phase, job in before.items()}
    assert phases == {phase: phase for phase in PHASES} | {"delivering": "succeeded"}

    with away(stack, part, fault):
        stack.s3.let_uploads_go()
        let_captures_go(stack.tools)
        time.sleep(AWAY_S)
    stack.modal.clear_faults()

    ends = {phase: held.end() for phase, held in in_each_phase.items()}
    jobs = {phase: end_well_once(stack, held.id) for phase, held in in_each_phase.items()}
    assert ends == {phase: stored["sha256"] for phase, stored in jobs.items()}
    # What had been sent and was told to us was not begun again.
    for phase in ("collecting", "running", "delivering"):
        assert jobs[phase]["attempt"] == before[phase]["attempt"], phase


def end_well_once(stack: Stack, request_id: str) -> dict:
    """The only artifact of its job, which ended once; no other run of it is alive."""
    job = until(stack, request_id, *FINAL)
    assert job["status"] == "succeeded", (job, stack.log("dispatcher"))
    ended = "select * from runners_jobevent where job_id = ? and to_status = 'succeeded'"
    assert len(stack.rows(ended, job["id"])) == 1
    [artifact] = stack.rows("select * from runners_artifact where job_id = ?", job["id"])
    assert artifact["file"] in stack.s3.keys()  # noqa: SIM118
    assert artifact["attempt"] == job["attempt"]
    calls = calls_for(stack, job)
    assert len(calls) <= job["attempt"]
    assert [call["id"] for call in calls if call["output"] is None] == []
    return artifact


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
    # What it fetched when it woke, after the other had finished the job and cleared up.
    stack.modal.wait_for(lambda _: not list((stack.folder / "modal-spool").iterdir()))


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
