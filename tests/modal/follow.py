"""Requests sent to a stack of processes, and where their jobs are."""

from __future__ import annotations

import base64

from tests.modal.stack import Stack
from tests.server.popcorn import form
from tests.server.service import wait_for

PATH = "/profile/rowsum_cpu/L4"
SUBMISSION = b"def custom_kernel(rows):\n    return [sum(row) for row in rows]\n"
FINAL = ("succeeded", "failed", "timed_out", "cancelled")


def submit(stack: Stack) -> str:
    """The id of a request that was accepted; one benchmark, nobody waits for the stream."""
    with stack.client(stack.cli_id) as client:
        answer = client.post(
            PATH,
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
    job = until(stack, request_id, *FINAL)
    assert (job["status"], job["attempt"]) == ("succeeded", attempt), stack.log("dispatcher")
    stored = stack.rows("select file from runners_artifact where job_id = ?", job["id"])
    kept = stack.s3.keys()
    assert [each["file"] in kept for each in stored] == [True]
    return job


def calls_of(stack: Stack, since: float) -> list[dict]:
    return [call for call in stack.modal.calls() if call["enqueued_at"] >= since]


def calls_for(stack: Stack, job: dict) -> list[dict]:
    """Of all attempts of one job; the argument of a call names it."""
    job_id = str(job["id"]).encode()
    return [
        call
        for call in stack.modal.calls()
        if job_id in base64.b64decode(call["input"].get("args", ""))
    ]
