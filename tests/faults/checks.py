"""What must hold when all has recovered: each function gives violations as sentences."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import cbor2

from runners.states import FINAL, MOVES, JobStatus
from tests.faults.ledger import Accepted, Ledger
from tests.faults.stack import Stack
from tests.object_store import BUCKET

# Both clocks are this machine's, but the provider's call and our row are not one moment.
OVERLAP_S = 0.5


def check_all(stack: Stack, ledger: Ledger) -> Iterator[str]:
    yield from check_outcomes(stack, ledger)
    yield from check_archives(stack, ledger)
    yield from check_starts(stack)
    yield from check_trail(stack)


def check_outcomes(stack: Stack, ledger: Ledger) -> Iterator[str]:
    """One end per accepted request, and the one that its client saw."""
    ends = Counter(
        str(row["job_id"])
        for row in stack.rows(
            "SELECT job_id FROM runners_jobevent WHERE to_status = ANY(%s)",
            [str(status) for status in FINAL],
        )
    )
    jobs: dict[tuple[bool, str], list[dict[str, Any]]] = defaultdict(list)
    for row in stack.rows(
        "SELECT r.id, j.id AS job, j.status FROM profiling_profilerequest r"
        " JOIN runners_job j ON j.id = r.job_id"
    ):
        jobs[True, str(row["id"])].append(row)
    for row in stack.rows(
        "SELECT s.submission_id AS id, j.id AS job, j.status, s.secret"
        " FROM leaderboards_submissionjob s JOIN runners_job j ON j.id = s.job_id"
        " ORDER BY s.secret"
    ):
        jobs[False, str(row["id"])].append(row)
    for item in ledger.accepted:
        mine = jobs[item.mode == "profile", item.id]
        if not mine:
            yield f"{item.mode} {item.id} was accepted, and no row knows it"
        for job in mine:
            if ends[str(job["job"])] != 1:
                yield f"job {job['job']} of {item.mode} {item.id} ended {ends[str(job['job'])]} times"
        if mine and (wrong := _told_otherwise(item, mine[-1]["status"])):
            yield wrong
    for job in stack.rows(
        "SELECT id, status FROM runners_job WHERE finished_at IS NULL OR stop_due"
    ):
        yield f"job {job['id']} is stuck as {job['status']}"


def _told_otherwise(item: Accepted, status: str) -> str:
    what = f"{item.mode} {item.id} is {status} in the rows, its client was told {item.outcome!r}"
    if item.outcome == "deleted":
        return "" if status in FINAL else what
    if item.mode == "profile":
        return "" if item.outcome == status else what
    # The wire calls a cancelled submission failed.
    return "" if item.outcome == {"cancelled": "failed"}.get(status, status) else what


def check_blame(ledger: Ledger) -> Iterator[str]:
    """The submissions are right: whatever failed is the service's fault, and told as such."""
    for item in ledger.accepted:
        if item.outcome == "failed" and "nothing is wrong with the submission" not in item.said:
            yield f"{item.mode} {item.id} failed, and it is not told as our fault: {item.said[:300]}"
        if item.outcome == "hacked":
            yield f"{item.mode} {item.id} is called hacked"


def check_archives(stack: Stack, ledger: Ledger) -> Iterator[str]:
    """What is stored, what the rows say of it, and what clients got are the same bytes."""
    client = stack.s3.client()
    stored = {
        row["file"]: row
        for row in stack.rows("SELECT job_id, file, size, sha256, name FROM runners_artifact")
    }
    for key, row in stored.items():
        try:
            content = client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        except client.exceptions.NoSuchKey:
            yield f"{key} has a row and is not stored"
            continue
        if (len(content), hashlib.sha256(content).hexdigest()) != (row["size"], row["sha256"]):
            yield f"{key} is not what its row says"
    for item in ledger.accepted:
        for key, digest in item.archives.items():
            rows = stack.rows(
                "SELECT a.sha256 FROM profiling_capture c JOIN runners_artifact a ON a.id ="
                " c.artifact_id WHERE c.request_id = %s AND a.name = %s",
                item.id,
                f"{key}.zip",
            )
            if [row["sha256"] for row in rows] != [digest]:
                yield f"profile {item.id}: {key} as its client got it is not what is stored"
    for row in stack.rows(
        "SELECT r.id FROM profiling_profilerequest r JOIN runners_job j ON j.id = r.job_id"
        " WHERE j.status = 'succeeded' AND NOT EXISTS (SELECT 1 FROM profiling_capture c"
        " WHERE c.request_id = r.id AND c.artifact_id IS NOT NULL AND c.failure_kind = '')"
    ):
        yield f"profile {row['id']} succeeded without a capture"


def check_starts(stack: Stack) -> Iterator[str]:
    """By the provider's own record: one call per attempt, and never two of a job at once."""
    of_attempt: Counter[tuple[str, int]] = Counter()
    of_job: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for call in stack.modal.calls():
        job, attempt = _read_call(stack, call)
        of_attempt[job, attempt] += 1
        of_job[job].append(call)
        if call["output"] is None:
            yield f"call {call['id']} of job {job} still runs"
    for (job, attempt), count in of_attempt.items():
        if count > 1:
            yield f"attempt {attempt} of job {job} was started {count} times"
    for job, calls in of_job.items():
        calls.sort(key=lambda call: call["enqueued_at"])
        for before, after in itertools.pairwise(calls):
            if before["ended_at"] is None or before["ended_at"] > after["enqueued_at"] + OVERLAP_S:
                yield f"job {job} ran twice at once: {before['id']} and {after['id']}"
    known = {str(row["id"]) for row in stack.rows("SELECT id FROM runners_job")}
    for job in of_job.keys() - known:
        yield f"the provider ran job {job}, which no row knows"


def _read_call(stack: Stack, call: dict[str, Any]) -> tuple[str, int]:
    """Job and attempt that a call was made for."""
    sent = call["input"]
    if "args" in sent:
        arguments = base64.b64decode(sent["args"])
    else:
        arguments = (stack.modal.state_dir / "blobs" / sent["argsBlobId"]).read_bytes()
    config = json.loads(cbor2.loads(arguments)[0][0])
    return config["job_id"], config["attempt"]


def check_trail(stack: Stack) -> Iterator[str]:
    """A chain of events per job, from new to its status, and an audit row for each move."""
    chains: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in stack.rows("SELECT * FROM runners_jobevent ORDER BY id"):
        chains[str(event["job_id"])].append(event)
    audited: dict[str, list[tuple[str, str, int]]] = defaultdict(list)
    for row in stack.rows("SELECT data FROM leaderboards_auditevent ORDER BY id"):
        if "to_status" in row["data"]:
            data = row["data"]
            audited[data["job"]].append((data["from_status"], data["to_status"], data["attempt"]))
    for job in stack.rows("SELECT id, status, attempt FROM runners_job"):
        chain = chains[str(job["id"])]
        yield from _gaps(job, chain)
        moves = [(e["from_status"], e["to_status"], e["attempt"]) for e in chain[1:]]
        if moves != audited[str(job["id"])]:
            yield f"the audit trail of job {job['id']} has {audited[str(job['id'])]}, not {moves}"
    yield from _unrecorded_orders(stack)


def _gaps(job: dict[str, Any], chain: list[dict[str, Any]]) -> Iterator[str]:
    at, attempt = "", 1
    for event in chain:
        back = at != "" and event["to_status"] == JobStatus.QUEUED
        attempt += back
        legal = event["to_status"] in (MOVES[JobStatus(at)] if at else {JobStatus.QUEUED})
        if (event["from_status"], event["attempt"]) != (at, attempt) or not legal:
            yield f"event {event['id']} of job {job['id']} does not follow on {at!r}, {attempt}"
        at = event["to_status"]
    if (at, attempt) != (job["status"], job["attempt"]):
        yield f"job {job['id']} is {job['status']}, its last event says {at}"


def _unrecorded_orders(stack: Stack) -> Iterator[str]:
    accepted = Counter(
        (row["subject_kind"], row["subject_id"])
        for row in stack.rows(
            "SELECT subject_kind, subject_id FROM leaderboards_auditevent"
            " WHERE verb IN ('profile.accepted', 'submission.accepted')"
        )
    )
    wanted = [
        ("profilerequest", str(row["id"]))
        for row in stack.rows("SELECT id FROM profiling_profilerequest WHERE job_id IS NOT NULL")
    ] + [
        ("submission", str(row["id"]))
        for row in stack.rows("SELECT id FROM leaderboards_submission WHERE mode <> 'profile'")
    ]
    for subject in wanted:
        if accepted[subject] != 1:
            yield f"{subject} has {accepted[subject]} rows that say it was accepted"
