"""The clock is set forward and back by an hour, for the service's processes alone (libfaketime)."""

from __future__ import annotations

import glob
import signal
import time
from uuid import UUID

import pytest

from kernelbot_site.supervisor import dispatcher_command
from tests.server.popcorn import PATH, form
from tests.server.service import Service, wait_for

LIBRARY = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), None)
HOUR = 3600
# Whatever the clock says, these runs last for ever, and these have ended.
UNENDING, OVER = 10.0**6, -(10.0**6)

pytestmark = [
    pytest.mark.services,
    pytest.mark.skipif(LIBRARY is None, reason="Debian's faketime is not installed"),
]


class Clocked(Service):
    """A web server and two dispatchers whose wall clock is `set`; their monotonic one is not."""

    def __init__(self, folder, **settings):
        self.clock = folder / "clock"
        self.set(0)
        super().__init__(
            folder,
            LD_PRELOAD=LIBRARY,
            FAKETIME_TIMESTAMP_FILE=self.clock,
            FAKETIME_CACHE_DURATION=1,
            FAKETIME_DONT_FAKE_MONOTONIC=1,
            LEASE_S=10,
            # A run's own limits are by the wall clock: a jump of an hour may cost one (docs/faults.md).
            RUN_WALL_S=5 * HOUR,
            **settings,
        )

    def set(self, ahead_s):
        written = self.clock.with_suffix(".new")
        written.write_text(f"{ahead_s:+d}\n")
        written.replace(self.clock)

    def start_another(self, name):
        self._start(name, dispatcher_command(), self._debug)

    def signal(self, name, number):
        self._process(name).send_signal(number)

    def submit(self):
        with self.client() as client:
            answer = client.post(PATH, headers={"Prefer": "respond-async"}, **form())
        assert answer.status_code == 202, answer.text
        return answer.json()["id"]

    def wait_until_all_are(self, status):
        def all_are():
            found = self.rows("SELECT status, lease_owner, attempt, queued_at FROM runners_job")
            return {row["status"] for row in found} == {status}

        try:
            wait_for(all_are, 240)
        except AssertionError:
            shown = self.rows("SELECT * FROM runners_job")
            raise AssertionError(f"{shown}\n{self.log('dispatcher')}") from None

    def readiness(self):
        with self.client() as client:
            return client.get("/ready").json()["checks"]["dispatcher"]


@pytest.fixture
def service(tmp_path):
    made = Clocked(tmp_path)
    made.prepare().start_web()
    made.start_dispatcher()
    made.start_another("second")
    yield made
    for name in list(made._processes):
        made.signal(name, signal.SIGCONT)
        made.stop(name, signal.SIGKILL)
    made.database.drop()


@pytest.mark.parametrize("jump_s", [HOUR, -HOUR])
def test_a_jump_of_an_hour_starts_nothing_twice_and_holds_nothing_up(service, jump_s):
    """FR-30: leases, turns in the queue and heartbeats are older or newer than is possible."""
    service.plan(run_s=UNENDING)
    for _ in range(2):
        service.submit()
    service.wait_until_all_are("running")

    # One dispatcher dies and one sleeps while the clock is set; one request waits meanwhile.
    service.signal("dispatcher", signal.SIGSTOP)
    service.signal("second", signal.SIGSTOP)
    service.submit()
    service.set(jump_s)
    time.sleep(1.5)  # the processes look at their clock's file once a second
    service.stop("dispatcher", signal.SIGKILL)
    service.signal("second", signal.SIGCONT)
    service.submit()

    service.wait_until_all_are("running")
    wait_for(lambda: service.readiness() == "ok")
    service.plan(run_s=OVER)
    service.wait_until_all_are("succeeded")
    for job in service.rows("SELECT id, attempt FROM runners_job"):
        starts = service.runner.calls("started", UUID(job["id"]))
        assert len(starts) <= job["attempt"]
