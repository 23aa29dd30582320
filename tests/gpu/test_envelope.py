"""The result envelope: what is written is read back, and whatever is malformed is refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import struct

import pytest

from runners.gpu import envelope
from runners.gpu.contract import (
    SCHEMA,
    CaptureRecord,
    CompileResult,
    Failure,
    FailureKind,
    JobOutcome,
    Note,
    NoteKind,
    RunRecord,
    RunResult,
    System,
)
from runners.gpu.envelope import EnvelopeError
from runners.gpu.wire import WireError, dumps

ARCHIVE = bytes(range(256)) * 5000


def make_outcome(**changes):
    run = RunResult(
        success=True,
        passed=False,
        command="python3 eval.py profile cases.txt",
        stdout="é\n",
        stderr="",
        exit_code=112,
        duration=1.5,
        result={"check": "fail"},
    )
    capture = CaptureRecord(
        profiler="Nsight-Compute",
        ncu_version="2025.2.1.0",
        launches=3,
        archive="profile.0.zip",
        archive_bytes=len(ARCHIVE),
        archive_sha256=hashlib.sha256(ARCHIVE).hexdigest(),
        extract="",
    )
    compilation = CompileResult(
        nvcc_found=True,
        nvcc_version="13",
        success=True,
        command="nvcc",
        stdout="",
        stderr="",
        exit_code=0,
    )
    record = RunRecord(
        start="2026-01-01T00:00:00+00:00",
        end="2026-01-01T00:01:00+00:00",
        compilation=compilation,
        run=run,
        capture=capture,
        notes=(Note(kind=NoteKind.WRONG_RESULT, message="wrong"),),
    )
    outcome = JobOutcome(
        job_id="job-1", attempt=2, system=System(gpu="NVIDIA B200"), runs={"profile.0": record}
    )
    return dataclasses.replace(outcome, **changes)


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "profile.0.zip"
    path.write_bytes(ARCHIVE)
    return path


@pytest.fixture
def written(tmp_path, archive):
    target = tmp_path / "result"
    envelope.write(target, make_outcome(), {"profile.0.zip": archive})
    return target


def test_what_is_written_is_read_back(written, tmp_path):
    read = envelope.read(written)

    assert read.outcome == make_outcome()
    assert read.header.status == "finished"
    assert read.header.exit_codes == {"profile.0": 112}
    read.extract("profile.0.zip", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == ARCHIVE
    assert [path.name for path in tmp_path.glob("*.part")] == []


def test_a_failed_job_says_so_in_the_header(tmp_path):
    failure = Failure(kind=FailureKind.PROFILER_MISSING, message="no ncu")
    envelope.write(tmp_path / "r", make_outcome(runs={}, failure=failure), {})
    assert envelope.read(tmp_path / "r").header.status == "profiler_missing"


def test_a_part_that_is_not_there_can_not_be_extracted(written, tmp_path):
    with pytest.raises(EnvelopeError, match="no part"):
        envelope.read(written).extract("other.zip", tmp_path / "copy")


def build(header=None, body=None, *, rest=b"", **changes):
    """An envelope of its parts, each of which can be wrong."""
    body = dumps(make_outcome(runs={})) if body is None else body
    part = {"name": "outcome.json", "size": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    fields = {
        "schema": SCHEMA,
        "status": "finished",
        "versions": {},
        "exit_codes": {},
        "parts": [part],
    }
    content = json.dumps(fields | changes).encode() if header is None else header
    return struct.pack(">I", len(content)) + content + body + rest


def part(name="outcome.json", content=b"", **changes):
    digest = hashlib.sha256(content).hexdigest()
    return {"name": name, "size": len(content), "sha256": digest} | changes


GOOD_BODY = dumps(make_outcome(runs={}))


def body_with(**changes):
    return json.dumps(json.loads(GOOD_BODY) | changes).encode()


def test_the_hand_made_envelope_is_good(tmp_path):
    (tmp_path / "r").write_bytes(build())
    assert envelope.read(tmp_path / "r").outcome.job_id == "job-1"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "shorter than its length"),
        (b"\0\0\0", "shorter than its length"),
        (struct.pack(">I", 70_000) + b"x" * 70_000, "at most 65536"),
        (build()[:40], "cut inside the header"),
        (build(header=b"{"), "not JSON"),
        (build(header=b"[]"), "object is wanted"),
        (build(header=b"\x80\x04\x95."), "not JSON"),
        (build(schema=SCHEMA + 1), "this side speaks"),
        (build(status="glorious"), "unknown status"),
        (build(surprise=1), "unknown field 'surprise'"),
        (build(versions=None), "versions"),
        (build(exit_codes={"test": "0"}), "int is wanted"),
        (build(exit_codes={"test": True}), "int is wanted"),
        (build(parts=[]), "must begin with outcome.json"),
        (build(parts=[part("other")]), "must begin with outcome.json"),
        (build(parts=[part(), part()]), "distinct names"),
        (build(parts=[part(content=GOOD_BODY, size=-1)]), "negative size"),
        (build(parts=[part(content=GOOD_BODY, size=9 * 2**20)]), "an outcome of"),
        (build(parts=[part(content=GOOD_BODY, sha256="0" * 64)]), "does not match its sha256"),
        (build()[:-1], "cut inside a part"),
        (build(rest=b"x"), "bytes after the last part"),
        (build(body=b"nonsense"), "not JSON"),
        (build(body=body_with(schema=SCHEMA + 1)), "this side speaks"),
        (build(body=body_with(surprise=1)), "unknown field"),
        (build(body=body_with(attempt="1")), "int is wanted"),
        (build(body=body_with(job_id="a\0b")), "NUL"),
        (build(body=body_with(failure={"kind": "odd", "message": ""})), "unknown value"),
        (build(body=body_with(runs={"test": {}})), "is missing"),
        (build(body=dumps(make_outcome())), "names a part that is not there"),
        (build(body=b'{"job_id":' + b"[" * 100_000), "not JSON"),
    ],
)
def test_whatever_is_malformed_is_refused(tmp_path, content, reason):
    """FR-25: malformed bytes are an error of ours, and nothing is unpickled."""
    (tmp_path / "r").write_bytes(content)
    with pytest.raises(EnvelopeError, match=reason):
        envelope.read(tmp_path / "r")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_numbers_that_are_none_are_refused(tmp_path, number):
    """FR-19."""
    body = dumps(make_outcome()).replace(b'"duration": 1.5', f'"duration": {number}'.encode())
    (tmp_path / "r").write_bytes(build(body=body))
    with pytest.raises(EnvelopeError, match="finite number"):
        envelope.read(tmp_path / "r")


def test_an_outcome_with_a_number_that_is_none_is_not_written():
    record = make_outcome().runs["profile.0"]
    run = dataclasses.replace(record.run, duration=float("nan"))
    outcome = make_outcome(runs={"profile.0": dataclasses.replace(record, run=run)})
    with pytest.raises(ValueError, match="JSON"):
        dumps(outcome)


def test_wire_errors_are_value_errors():
    assert issubclass(WireError, ValueError)
