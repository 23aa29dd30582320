"""The factory's own promises: others build their cases on them."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from profiling.reports.facts import Problem
from profiling.reports.reader import read_report
from tests.synthetic_reports import Launch, dimensions, write_demo_archive, write_report

ROOT = Path(__file__).parents[2]
ASK_LIBRARY = """
import json, sys, ncu_report
action = ncu_report.load_report(sys.argv[1]).range_by_idx(0).action_by_idx(0)
names = [action.name(), action.name(action.NameBase_DEMANGLED), action.name(action.NameBase_MANGLED)]
values = {name: repr(action.metric_by_name(name).value()) for name in action.metric_names()}
state = action.nvtx_state()
ranges = [list(state.domain_by_id(id).push_pop_ranges()) for id in state.domains()]
print(json.dumps([names, values, ranges]))
"""


def test_the_library_gives_back_exactly_what_was_written(tmp_path):
    metrics = {
        "a": 0.1,
        "b": math.nan,
        "c": -math.inf,
        "d": 2**64 - 1,
        "e": "text",
        "f": None,
        "g": 1e-300,
    }
    launch = Launch(
        name="k", demangled="k<int>(float)", mangled="_Z1k", metrics=metrics, nvtx=("out", "in")
    )
    path = write_report(tmp_path / "it.ncu-rep", [launch], pad_bytes=1000)

    printed = subprocess.run(
        [sys.executable, "-I", "-c", ASK_LIBRARY, path],
        capture_output=True,
        check=True,
        timeout=300,
    ).stdout
    names, values, ranges = json.loads(printed)

    assert names == ["k", "k<int>(float)", "_Z1k"]
    assert values == {name: repr(value) for name, value in metrics.items()}
    assert ranges == [["out", "in"]]


def test_padding_has_the_size_asked_for_and_does_not_shrink(tmp_path):
    bare = write_report(tmp_path / "bare.ncu-rep", [Launch(name="k")]).stat().st_size
    padded = write_report(tmp_path / "it.ncu-rep", [Launch(name="k")], pad_bytes=100_000)
    with zipfile.ZipFile(tmp_path / "it.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(padded, "it")
        shrunk = archive.getinfo("it").compress_size

    assert 0 <= padded.stat().st_size - bare - 100_000 < 40
    assert shrunk > 100_000


def test_a_number_that_no_report_can_hold_is_refused(tmp_path):
    with pytest.raises(ValueError, match="64-bit"):
        write_report(tmp_path / "it.ncu-rep", [Launch(name="k", metrics={"a": -1})])


def test_dimensions_are_the_metrics_of_a_real_report():
    assert dimensions((2, 3, 4), (5, 1, 1)) == {
        "launch__grid_size": 24.0,
        "launch__grid_dim_x": 2.0,
        "launch__grid_dim_y": 3.0,
        "launch__grid_dim_z": 4.0,
        "launch__block_size": 5.0,
        "launch__block_dim_x": 5.0,
        "launch__block_dim_y": 1.0,
        "launch__block_dim_z": 1.0,
    }


def test_the_demo_archive_is_readable_and_says_everywhere_that_it_is_synthetic(tmp_path):
    made = subprocess.run(
        [sys.executable, "-m", "tests.synthetic_reports", tmp_path / "demo.zip"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=300,
    )
    with zipfile.ZipFile(tmp_path / "demo.zip") as archive:
        assert archive.namelist() == ["profile.ncu-rep", "ncu-details.txt", "ncu-details.csv"]
        archive.extractall(tmp_path)

    for said in (made.stdout.decode(), *details(tmp_path)):
        assert "synthetic" in said.splitlines()[0]
        assert "no capture" in said.splitlines()[0]
    facts = read_report(tmp_path / "profile.ncu-rep")
    assert (facts.problem, facts.launch_count) == (Problem.NONE, 3)
    assert "(synthetic)" in facts.session.gpu_name
    assert "(synthetic)" in facts.session.ncu_version
    assert b"synthetic report" in (tmp_path / "profile.ncu-rep").read_bytes()


def details(folder):
    for name in ("ncu-details.txt", "ncu-details.csv"):
        yield (folder / name).read_text()


def test_the_demo_archive_is_the_same_every_time(tmp_path):
    first = write_demo_archive(tmp_path / "first.zip").read_bytes()

    assert write_demo_archive(tmp_path / "second.zip").read_bytes() == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first.zip", "second.zip"]
