from __future__ import annotations

import asyncio
import time
import zipfile

import pytest

from runners.backends.base import Finished
from runners.backends.recorded import RecordedRunner
from runners.exceptions import RunnerFault
from runners.gpu import envelope
from runners.gpu.contract import JobConfig, Mode
from tests.synthetic_reports import DEMO_LAUNCHES, write_demo_archive


def config_of(mode=Mode.PROFILE) -> JobConfig:
    return JobConfig(
        job_id="a-job", attempt=1, mode=mode, lang="py", main="eval.py", sources={},
        benchmarks=({"size": 8}, {"size": 16}, {"size": 32}), selected=(0, 2),
    )  # fmt: skip


@pytest.fixture
def runner(settings, tmp_path):
    settings.DATA_DIR = tmp_path
    settings.RECORDED_ARCHIVE = tmp_path / "capture.zip"
    return RecordedRunner()


def replay(runner) -> tuple[envelope.Envelope, list[str]]:
    external_id = asyncio.run(runner.start("B200", config_of()))
    phases = []
    while not isinstance(news := asyncio.run(runner.poll(external_id)), Finished):
        phases.append(news.phase)
        time.sleep(0.1)
    return envelope.read(news.envelope), phases


def test_every_selected_benchmark_gets_the_archive_with_its_bytes_unchanged(runner, tmp_path):
    archive = write_demo_archive(runner.archive)

    replayed, phases = replay(runner)

    assert sorted(replayed.outcome.runs) == ["profile.0", "profile.2"]
    for key, record in replayed.outcome.runs.items():
        assert record.capture.launches == len(DEMO_LAUNCHES)
        replayed.extract(record.capture.archive, tmp_path / key)
        assert (tmp_path / key).read_bytes() == archive.read_bytes()
    assert list(dict.fromkeys(phases)) == [
        "compiling", "replaying benchmark 0", "replaying benchmark 2",
    ]  # fmt: skip


def test_a_replay_is_named_so_wherever_it_shows_and_synthetic_where_it_is(runner):
    write_demo_archive(runner.archive)
    synthetic = replay(runner)[0].outcome
    with zipfile.ZipFile(runner.archive) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["ncu-details.txt"] = b"[4242] python3@127.0.0.1\n  kernel (1, 1, 1)x(1, 1, 1)\n"
    with zipfile.ZipFile(runner.archive, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    real = replay(runner)[0].outcome

    for outcome, word in ((synthetic, "recorded (synthetic)"), (real, "recorded")):
        assert outcome.origin == word
        assert outcome.system.platform == word
        assert outcome.system.gpu == f"none: {word}"
        assert f"This capture is {word}:" in outcome.runs["profile.0"].run.stdout


def test_only_profiles_are_replayed(runner):
    with pytest.raises(RunnerFault) as raised:
        asyncio.run(runner.start("B200", config_of(Mode.BENCHMARK)))

    assert (raised.value.kind, raised.value.retryable) == ("mode_not_offered", False)


@pytest.mark.parametrize("content", [None, b"no zip"])
def test_an_archive_that_cannot_be_read_is_our_fault(runner, content):
    if content:
        runner.archive.write_bytes(content)

    with pytest.raises(RunnerFault) as raised:
        replay(runner)

    assert (raised.value.kind, raised.value.retryable) == ("bad_recording", False)
