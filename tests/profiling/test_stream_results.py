"""The result event and the news, as they are made from rows."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest

from profiling.streaming.endings import describe_failure
from profiling.streaming.events import frame
from profiling.streaming.news import read_news
from profiling.wire_result import DamagedArtifact, build_result
from runners.models import Job
from runners.pauses import pause_gpu
from runners.states import JobStatus
from runners.transitions import move
from tests.profiling.orders import submit
from tests.profiling.pages import HOSTILE


def line_of(result) -> bytes:
    async def read() -> bytes:
        return b"".join([piece async for piece in result.pieces()])

    return asyncio.run(read())


def stored_bytes(capture) -> bytes:
    with capture.artifact.file.open() as stored:
        return stored.read()


def test_the_line_is_ascii_json_with_the_stored_archive_in_it(captured):
    capture = captured.captures.get(benchmark_index=0)

    line = line_of(build_result(captured, list(captured.captures.all())))

    assert line.isascii()
    assert b"\n" not in line
    runs = json.loads(line)["results"][0]["runs"]
    archive = base64.b64decode(runs["profile.0"]["profile"]["trace"], validate=True)
    assert archive == stored_bytes(capture)
    assert runs["profile.1"]["profile"] is None
    assert runs["profile.1"]["run"]["success"] is False
    assert HOSTILE in runs["profile.1"]["run"]["stderr"]


def test_words_of_a_submission_cannot_stand_for_an_archive(captured):
    """The marks in the text are made anew for each result; what looks like one stays text."""
    capture = captured.captures.get(benchmark_index=0)
    first = build_result(captured, [capture])
    capture.extract = capture.spec = json.dumps([str(part) for part in first.parts])
    capture.run = capture.run | {"stdout": '-0"' * 50}

    document = json.loads(line_of(build_result(captured, [capture])))

    run = document["results"][0]["runs"]["profile.0"]
    assert run["run"]["stdout"] == '-0"' * 50
    assert base64.b64decode(run["profile"]["trace"], validate=True)


def test_a_limit_that_was_reached_is_said_before_the_result(captured):
    """FR-01."""
    messages = build_result(captured, list(captured.captures.all())).messages

    assert any("profile.0: Limit reached" in message for message in messages)
    assert any("partial" in message for message in messages)


def test_pieces_of_any_size_give_the_base64_of_the_whole(captured, monkeypatch):
    monkeypatch.setattr("profiling.wire_result.PIECE_BYTES", 3)
    capture = captured.captures.get(benchmark_index=0)

    document = json.loads(line_of(build_result(captured, [capture])))

    trace = document["results"][0]["runs"]["profile.0"]["profile"]["trace"]
    assert trace == base64.b64encode(stored_bytes(capture)).decode()


def test_a_changed_file_is_never_sent_as_a_whole_result(captured):
    capture = captured.captures.get(benchmark_index=0)
    result = build_result(captured, [capture])
    with open(capture.artifact.file.path, "ab") as stored:
        stored.write(b"x")

    with pytest.raises(DamagedArtifact):
        line_of(result)


def test_a_frame_has_no_byte_that_the_client_could_cut_in_two():
    """FR-38."""
    made = frame("status", {"message": "é 🙂 \r\n\u2028"})

    assert made.isascii()
    assert made.count(b"\n") == 3
    assert made.endswith(b"\n\n")
    assert b"\r" not in made


def test_queue_positions_count_per_gpu_from_one(alice, rowsum):
    requests = [submit(alice, gpu_name=gpu) for gpu in ("B200", "H100", "B200", "B200")]

    news = read_news([each.job_id for each in requests])

    assert [news[each.job_id].queue_position for each in requests] == [1, 1, 2, 3]


def test_a_paused_gpu_is_told_without_the_operators_reason(alice, rowsum):
    """FR-09: to wait is better than to be failed, but it has to be said."""
    request = submit(alice)
    pause_gpu("B200", kind="counters_not_permitted", reason=HOSTILE, actor_label="olga")

    message = read_news([request.job_id])[request.job_id].message

    assert "paused" in message
    assert HOSTILE not in message


@pytest.mark.parametrize(
    ("to", "kind", "status", "ours"),
    [
        (JobStatus.CANCELLED, "", 409, False),
        (JobStatus.TIMED_OUT, "queue_limit", 504, True),
        (JobStatus.FAILED, "run_unknown", 503, True),
        (JobStatus.FAILED, "profiler_version", 503, True),
        (JobStatus.FAILED, "job_time_limit", 400, False),
    ],
)
def test_only_failures_of_the_submission_are_told_in_the_words_of_the_gpu_side(
    alice, rowsum, to, kind, status, ours
):
    request = submit(alice)
    job = Job.objects.get(pk=request.job_id)
    move(job, to, actor_label="test", failure_kind=kind, failure_message="/secret/path broke")

    error = describe_failure(request, job)

    assert error["status_code"] == status
    assert ("/secret/path" in error["detail"]) == (kind == "job_time_limit")
    assert (str(request.pk) in error["detail"]) == ours


def test_the_line_never_exceeds_its_cap(captured, settings):
    """FR-21: just under the size of everything, the archive stays behind and the text goes."""
    captures = list(captured.captures.all())
    whole = len(line_of(build_result(captured, captures)))
    settings.RESULT_LINE_MAX_BYTES = whole

    capped = build_result(captured, captures)

    line = line_of(capped)
    assert len(line) < whole
    assert json.loads(line)["results"][0]["runs"]["profile.0"]["profile"]["trace"] is None
    assert any("too large for this stream" in message for message in capped.messages)
