"""Configs that can't be run are refused in clear words, and no file is written outside."""

from __future__ import annotations

import pytest

from runners.gpu.contract import FailureKind, Fault, Mode
from runners.gpu.job import run_job
from tests.gpu.conftest import EVALUATOR, IDENTITY, make_config

FILES = {"eval.py": EVALUATOR, "submission.py": IDENTITY}


@pytest.mark.parametrize(
    "name",
    [
        "../outside.py",
        "/tmp/outside.py",
        "a/../../outside.py",
        "./here.py",
        "a//b.py",
        "folder/",
        "",
        ".",
        "--config",
        "a\nb.py",
        "a\\b.py",
        "x" * 256,
        "/".join(["long"] * 300),
        "eval.py/inside.py",
        "lone-\ud800.py",
    ],
)
def test_unsafe_file_names_are_refused(run, tmp_path, name):
    job = run(sources=FILES | {name: "print('outside')"})

    assert job.outcome.failure.kind is FailureKind.BAD_CONFIG
    assert job.runs == {}
    assert not list(tmp_path.rglob("outside.py"))


def test_text_that_is_no_text_is_refused(run):
    job = run(sources=FILES | {"data.txt": "\ud800"})
    assert job.outcome.failure.kind is FailureKind.BAD_CONFIG


def test_files_in_folders_are_laid_out(run):
    evaluator = EVALUATOR.replace("import os, sys", "import os, sys, tasks.deep.values as v")
    job = run(sources=FILES | {"eval.py": evaluator, "tasks/deep/values.py": "X = 1"})
    assert job.runs["test"].run.passed


@pytest.mark.parametrize(
    "changes",
    [
        {"lang": "rs"},
        {"main": "missing.py"},
        {"main": None},
        {"sources": {}},
        {"headers": {"eval.py": ""}},
        {"mode": Mode.PROFILE, "selected": (3,)},
        {"mode": Mode.PROFILE, "selected": (-1,)},
        {"mode": Mode.PROFILE, "selected": (0, 0)},
        {"mode": Mode.PROFILE, "selected": ()},
    ],
)
def test_configs_that_make_no_sense_are_refused(run, changes):
    assert run(**changes).outcome.failure.kind is FailureKind.BAD_CONFIG


def test_a_crash_of_ours_is_told_without_its_text(tmp_path):
    """Nothing escapes, and a message shows no path of the machine."""
    outcome, archives = run_job(make_config(), tmp_path / "missing", report_phase=lambda _: None)

    assert outcome.failure.kind is FailureKind.GPU_SIDE_CRASHED
    assert outcome.failure.kind.fault is Fault.SERVICE
    assert "FileNotFoundError" in outcome.failure.message
    assert str(tmp_path) not in outcome.failure.message
    assert archives == {}
