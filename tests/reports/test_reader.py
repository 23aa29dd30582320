from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from profiling.reports.child import LAUNCHES_KEPT, UNAVAILABLE_KEPT
from profiling.reports.details import MetricState
from profiling.reports.facts import KEY_METRICS, Problem, Unavailable
from profiling.reports.limited import ChildLimits
from profiling.reports.reader import read_report
from profiling.reports.text import NAME_CHARS
from runners.gpu import wire
from tests.reports.samples import each_sample, needs_samples, sample
from tests.synthetic_reports import (
    DEMO_LAUNCHES,
    DEVICE,
    Launch,
    dimensions,
    write_report,
)

DURATION = "gpu__time_duration.sum"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
HIT_RATE = "lts__t_sector_hit_rate.pct"


def no_constant(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


@each_sample
def test_launches_names_and_metrics_of_real_reports_are_those_of_the_index(said):
    facts = read_report(sample(said["file"]))

    assert (facts.problem, facts.launch_count) == (Problem.NONE, said["actions"])
    assert [launch.name for launch in facts.launches] == [
        launch["name"] for launch in said["launches"]
    ]
    for launch, told in zip(facts.launches, said["launches"], strict=True):
        assert (launch.metric_count, launch.nan_count) == (told["metrics"], told["nan_metrics"])
        for name, value in told["values"].items():
            metric = launch.metrics[name]
            assert (metric.state, metric.value) == (value["state"], value["value"])
            assert metric.unit == (value["unit"] or "")


@each_sample
def test_metrics_without_a_value_are_counted_as_the_index_counts_them(said):
    """FR-10"""
    facts = read_report(sample(said["file"]))

    for state in ("nan", "inf", "no_value"):
        counted = sum(getattr(launch, f"{state}_count") for launch in facts.launches)
        listed = sum(metric.launches for metric in facts.unavailable if metric.state == state)
        assert counted == said[f"{state}_metrics_total"]
        assert listed == counted or facts.unavailable_count > UNAVAILABLE_KEPT


@needs_samples
def test_a_failed_launch_has_neither_grid_nor_values():
    facts = read_report(sample("a10g-ncu2023.1-failed-kernel-nan.ncu-rep"))

    *good, failed = facts.launches
    assert [launch.grid for launch in good] == [(128, 128, 1)] * 3
    assert (failed.grid, failed.block) == (None, None)
    assert failed.metrics[DURATION].state is MetricState.NAN
    assert failed.metrics["launch__grid_size"].state is MetricState.ABSENT


@needs_samples
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("empty", Problem.CUT),
        ("magic-only-4-bytes", Problem.CUT),
        ("random-after-magic", Problem.CUT),
        ("truncated-50pct", Problem.CUT),
        ("garbage-1k-middle", Problem.CUT),
        ("extra-crash-source-files", Problem.NONE),
    ],
)
def test_hostile_reports_give_their_problem_and_no_crash(name, problem):
    facts = read_report(sample(f"hostile/{name}.ncu-rep"))

    assert facts.problem == problem
    assert bool(facts.detail) == (problem is not Problem.NONE)


def test_a_synthetic_report_gives_back_what_was_written(tmp_path):
    facts = read_report(write_report(tmp_path / "it.ncu-rep", DEMO_LAUNCHES))

    assert (facts.problem, facts.launch_count, facts.replay_passes) == (Problem.NONE, 3, 39)
    assert facts.session.gpu_name == "NVIDIA B200 (synthetic)"
    for launch, written in zip(facts.launches, DEMO_LAUNCHES, strict=True):
        assert (launch.name, launch.demangled) == (written.name, written.demangled)
        assert (launch.grid, launch.block) == (written.grid, written.block)
        assert list(launch.metrics) == list(KEY_METRICS)
        for name, metric in launch.metrics.items():
            assert (metric.state, metric.value) == (MetricState.OK, written.metrics[name])
    assert facts.launches[0].metrics[DURATION].unit == "ns"


def test_fields_of_a_later_version_in_a_launch_are_passed_over(tmp_path):
    launches = [replace(launch, later_fields=True) for launch in DEMO_LAUNCHES]

    facts = read_report(write_report(tmp_path / "later.ncu-rep", launches))
    known = read_report(write_report(tmp_path / "known.ncu-rep", DEMO_LAUNCHES))

    assert (facts.problem, facts.launches, facts.details) == (
        *(Problem.NONE, known.launches, known.details),
    )


def test_nan_and_infinity_become_null_with_their_state_in_strict_json(tmp_path):
    """FR-10, FR-19"""
    odd = {DURATION: 1.5, OCCUPANCY: math.nan, HIT_RATE: math.inf, "a": -math.inf, "b": None}
    launches = [Launch(name="k", metrics=odd), Launch(name="k", metrics={"b": None})]

    facts = read_report(write_report(tmp_path / "it.ncu-rep", launches))

    assert facts.problem is Problem.NONE
    metrics = facts.launches[0].metrics
    assert (metrics[DURATION].state, metrics[DURATION].value) == ("ok", 1.5)
    assert (metrics[OCCUPANCY].state, metrics[OCCUPANCY].value) == ("nan", None)
    assert (metrics[HIT_RATE].state, metrics[HIT_RATE].value) == ("inf", None)
    assert metrics["smsp__inst_executed.sum"].state is MetricState.ABSENT
    assert facts.unavailable == (
        Unavailable(name="a", state=MetricState.INF, launches=1),
        Unavailable(name="b", state=MetricState.NO_VALUE, launches=2),
        Unavailable(name=HIT_RATE, state=MetricState.INF, launches=1),
        Unavailable(name=OCCUPANCY, state=MetricState.NAN, launches=1),
    )
    text = json.dumps(facts.kernels_json(), allow_nan=False)
    read_back = json.loads(text, parse_constant=no_constant)
    assert read_back[0]["metrics"][OCCUPANCY] == {
        "state": "nan", "value": None, "unit": ""
    }  # fmt: skip


def test_a_report_without_a_launch_is_empty_whatever_its_size(tmp_path):
    """FR-04"""
    path = write_report(tmp_path / "it.ncu-rep", [], pad_bytes=7_000_000)

    facts = read_report(path)

    assert (facts.problem, facts.launch_count) == (Problem.EMPTY, 0)
    assert facts.session.ncu_release == "2025.2.1"


@pytest.mark.parametrize("nameless", [None, ""])
def test_one_nameless_launch_among_good_ones_spoils_the_report(tmp_path, nameless):
    launches = [Launch(name="good"), Launch(name=nameless), Launch(name="good")]

    facts = read_report(write_report(tmp_path / "it.ncu-rep", launches))

    assert (facts.problem, facts.launch_count) == (Problem.NAMELESS_LAUNCH, 3)
    assert [launch.name for launch in facts.launches] == ["good", "", "good"]
    assert "1 of 3" in facts.detail


def test_every_cut_of_a_report_is_noticed_unless_it_is_between_blocks(tmp_path):
    whole = write_report(tmp_path / "whole.ncu-rep", DEMO_LAUNCHES[:1]).read_bytes()
    path = tmp_path / "cut.ncu-rep"

    problems = set()
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        problems.add(read_report(path).problem)

    assert Problem.CUT in problems
    assert problems <= {Problem.CUT, Problem.EMPTY}


def test_hostile_names_are_made_storable_and_cut(tmp_path):
    metrics = {"m\0\x1b[31m": None, "device__attribute_display_name": "G\0PU"}
    launches = [
        Launch(name="k\x1b[2J\n", metrics=metrics),
        Launch(name="<script>" + "x" * 70_000),
        Launch(name="k\0k"),
    ]

    facts = read_report(write_report(tmp_path / "it.ncu-rep", launches))

    first, second, third = facts.launches
    assert facts.problem is Problem.NONE
    assert len(second.name) == NAME_CHARS
    assert second.name.startswith("<script>xxx")
    assert second.name.endswith("x…")
    assert first.name == "k\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}"
    assert third.name.startswith("k")
    assert facts.details is not None
    text = json.dumps(wire.encode(facts.details), ensure_ascii=False)
    assert not any(char in text for char in ("\0", "\x1b", "\\u0000", "\\u001b"))


def test_many_launches_are_counted_and_the_first_ones_kept(tmp_path):
    launches = [Launch(name=f"k{n}", metrics={"bad": None}) for n in range(LAUNCHES_KEPT + 57)]

    facts = read_report(write_report(tmp_path / "it.ncu-rep", launches))

    assert (facts.launch_count, len(facts.launches)) == (LAUNCHES_KEPT + 57, LAUNCHES_KEPT)
    assert facts.launches[-1].name == f"k{LAUNCHES_KEPT - 1}"
    assert facts.unavailable[0].launches == LAUNCHES_KEPT + 57


def test_many_unavailable_metrics_are_counted_and_the_first_ones_kept(tmp_path):
    metrics = {f"m{n:04}": math.nan for n in range(UNAVAILABLE_KEPT + 5)}

    facts = read_report(write_report(tmp_path / "it.ncu-rep", [Launch(name="k", metrics=metrics)]))

    assert facts.unavailable_count == facts.launches[0].nan_count == UNAVAILABLE_KEPT + 5
    assert [metric.name for metric in facts.unavailable] == sorted(metrics)[:UNAVAILABLE_KEPT]


def test_the_qr_capture_with_six_unavailable_counters_is_good_and_names_them(tmp_path):
    """FR-10"""
    counters = {f"ctc__rx_bytes_{n}.sum": math.nan for n in range(6)}
    measured = {DURATION: 322_780.0, OCCUPANCY: 12.51, "profiler__replayer_passes": 39.0}
    size = dimensions((20, 1, 1), (128, 1, 1))
    launch = Launch(name="geqr2", metrics={**DEVICE, **size, **measured, **counters})

    facts = read_report(write_report(tmp_path / "it.ncu-rep", [launch]))

    assert (facts.problem, facts.replay_passes) == (Problem.NONE, 39)
    assert [metric.name for metric in facts.unavailable] == sorted(counters)
    assert facts.launches[0].grid == (20, 1, 1)


STAND_INS = {
    "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)": Problem.READER_CRASHED,
    "raise SystemExit(3)": Problem.READER_CRASHED,
    "print('not JSON')": Problem.READER_CRASHED,
    "pass": Problem.READER_CRASHED,
    "print('{\"launch_count\": NaN}')": Problem.READER_CRASHED,
    "print('[' * 200000)": Problem.READER_CRASHED,
    "held = bytearray(2**31)": Problem.READER_CRASHED,
    'print(\'{"refused": "ValueError: no"}\')': Problem.READER_REFUSED,
    "import time; time.sleep(600)": Problem.READER_TIMEOUT,
}


@pytest.mark.parametrize(("program", "problem"), STAND_INS.items())
def test_a_reader_that_goes_wrong_is_a_problem_and_no_exception(tmp_path, program, problem):
    reader = tmp_path / "reader.py"
    reader.write_text(program)
    # Only the one that never ends may meet its clock, however slow the machine is.
    wall_s = 1 if problem is Problem.READER_TIMEOUT else 300
    path = write_report(tmp_path / "it.ncu-rep", DEMO_LAUNCHES)

    facts = read_report(path, limits=ChildLimits(wall_s=wall_s), reader=reader)

    assert facts.problem == problem
    assert (facts.launch_count, facts.launches) == (3, ())
    assert facts.session.ncu_release == "2025.2.1"
    assert str(tmp_path) not in facts.detail


def test_a_reader_that_prints_without_end_is_told_as_that(tmp_path):
    reader = tmp_path / "reader.py"
    reader.write_text("while True: print('x' * 65536)")
    path = write_report(tmp_path / "it.ncu-rep", DEMO_LAUNCHES)

    assert "without an end" in read_report(path, reader=reader).detail


def test_the_library_out_of_memory_is_a_problem_and_no_empty_report(tmp_path):
    """Short of memory it was seen to load a report without a word, and without its launches."""
    limits = ChildLimits(memory_bytes=180 * 2**20)
    small = write_report(tmp_path / "small.ncu-rep", DEMO_LAUNCHES)
    large = write_report(tmp_path / "large.ncu-rep", DEMO_LAUNCHES, pad_bytes=150_000_000)

    assert read_report(small, limits=limits).problem is Problem.NONE
    assert read_report(large, limits=limits).problem in {
        Problem.READER_CRASHED,
        Problem.READER_REFUSED,
    }


def test_launches_that_the_library_loses_are_noticed(tmp_path):
    reader = tmp_path / "reader.py"
    numbers = ("nameless", "failed", "counters", "counters_unusable", "unavailable_count")
    lists: dict[str, object] = {"launches": [], "sections": [], "units": {}, "unavailable": []}
    found = {"launch_count": 2, "metrics_left_out": 0, **dict.fromkeys(numbers, 0), **lists}
    reader.write_text(f"print({json.dumps(json.dumps(found))})")

    facts = read_report(write_report(tmp_path / "it.ncu-rep", DEMO_LAUNCHES), reader=reader)

    assert facts.problem is Problem.READER_REFUSED
    assert "2 of 3" in facts.detail


def test_a_file_that_is_not_there_is_the_caller_s_mistake(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_report(Path(tmp_path / "nothing.ncu-rep"))
