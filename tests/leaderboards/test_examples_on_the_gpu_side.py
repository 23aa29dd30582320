"""The CPU example all the way: checkout, leaderboard, task config, GPU side, verdict."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from leaderboards.preparation import prepare
from leaderboards.problem_sync import sync_problems
from leaderboards.task_config import build_job_config
from runners.gpu import envelope, wire
from runners.gpu.contract import JobOutcome, Mode

ROOT = Path(__file__).resolve().parents[2]
SUBMISSION = (ROOT / "examples/problems/rowsum_cpu/submission.py").read_bytes()


@pytest.fixture
def run(alice, tmp_path):
    sync_problems(ROOT / "examples", actor=None)

    def call(mode: Mode, content: bytes = SUBMISSION) -> JobOutcome:
        prepared = prepare(
            user=alice,
            leaderboard_name="rowsum_cpu",
            gpu_name="CPU",
            mode=mode,
            file_name="submission.py",
            content=content,
        )
        config = build_job_config(
            prepared.revision,
            prepared.text,
            job_id="j",
            attempt=1,
            mode=mode,
            gpu=prepared.gpu,
            selected=prepared.selected,
            seed=11,
            capture=None,
        )
        (tmp_path / "config.json").write_bytes(wire.dumps(config))
        subprocess.run(
            [sys.executable, "-S", "-m", "runners.gpu", "config.json", "result"],
            cwd=tmp_path,
            env={
                "PYTHONPATH": str(ROOT),
                "PATH": os.environ["PATH"],
                "KERNELBOT_PYTHON": sys.executable,
            },
            check=True,
            timeout=300,
        )
        return envelope.read(tmp_path / "result").outcome

    return call


def test_a_ranked_run_passes_all_three_stages_and_is_timed(run):
    outcome = run(Mode.LEADERBOARD)

    assert outcome.failure is None
    assert list(outcome.runs) == ["test", "benchmark", "leaderboard"]
    for record in outcome.runs.values():
        assert record.run is not None
        assert record.run.passed, record.run.stderr
    ranked = outcome.runs["leaderboard"].run
    assert ranked is not None
    assert ranked.result["benchmark-count"] == "3"
    assert ranked.result["benchmark.0.spec"] == "rows: 64; cols: 64; seed: 7"
    assert float(ranked.result["benchmark.2.mean"]) > float(ranked.result["benchmark.0.mean"]) > 0


def test_a_wrong_submission_is_a_run_that_did_not_pass(run):
    outcome = run(Mode.TEST, b"def custom_kernel(rows):\n    return [0.0] * len(rows)\n")

    assert outcome.failure is None
    test = outcome.runs["test"].run
    assert test is not None
    assert (test.success, test.passed, test.exit_code) == (True, False, 112)
    assert test.result["test.0.error"].startswith("mismatch at row 0")
