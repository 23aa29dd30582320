"""All that is read out of real reports, beside the key facts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from profiling.reports.details import DetailsError, ReportDetails, pack, unpack
from profiling.reports.export import details_csv, details_text
from profiling.reports.limited import ChildLimits
from profiling.reports.reader import read_report
from profiling.reports.sources import with_sources
from profiling.reports.summary import Bound, summarise
from runners.gpu import wire
from tests.reports.samples import INDEX, SAMPLES, each_sample, needs_samples, sample
from tests.synthetic_reports import DEMO_LAUNCHES, Launch, write_report

# What the makers of the samples put in the place of users, hosts and addresses.
PRIVATE = (
    *("user01", "user0", "hostx", "host-1", "192.0.2.", "192.168.100.", "198.51.100."),
    *("203.0.113.", "fe80::", "2001:db8", "/home/", "\\\\Users", "/data/", "/mnt/"),
)


@pytest.fixture(scope="module")
def read():
    """Each sample is read once."""
    known: dict[str, ReportDetails] = {}

    def of(name: str) -> ReportDetails:
        if name not in known:
            details = read_report(sample(name)).details
            assert details is not None
            known[name] = details
        return known[name]

    return of


@each_sample
def test_rule_results_that_say_something_are_all_read(read, said):
    """Rules that found nothing have no message, and are no findings."""
    launches = read(said["file"]).launches
    findings = [each for launch in launches for each in launch.findings]

    assert sum(launch.rule_count for launch in launches) == said["rule_results_total"]
    assert bool(findings) == bool(said["rule_results_total"])
    assert all(each.message and each.rule and each.section for each in findings)
    assert not any("@section" in each.message or "@url" in each.message for each in findings)


@each_sample
def test_nothing_stored_or_exported_names_the_machine_or_its_people(read, said):
    """FR-22"""
    facts = read_report(sample(said["file"]))
    assert facts.details is not None

    stored = [facts.session.to_json(), facts.kernels_json(), facts.unavailable_json()]
    text = (
        json.dumps([*stored, wire.encode(facts.details)])
        + wire.dumps(summarise(facts.details)).decode()
    )
    exports = [*details_text(facts.details), *details_csv(facts.details)]

    for mark in PRIVATE:
        assert mark not in text
        assert not any(mark in line for line in exports)


@needs_samples
def test_the_marks_of_that_test_do_stand_in_the_samples():
    content = b"".join(sample(said["file"]).read_bytes() for said in INDEX)

    assert SAMPLES is not None
    assert all(mark.encode() in content for mark in PRIVATE if "Users" not in mark)


@each_sample
def test_what_is_packed_comes_back_the_same(read, said):
    packed = pack(read(said["file"]))

    assert unpack(packed.content, packed.schema) == read(said["file"])
    assert len(packed.content) < packed.unpacked_bytes / 3


@pytest.mark.parametrize("harm", ["cut", "noise", "schema"])
def test_damaged_details_are_an_error_of_their_own(tmp_path, harm):
    details = read_report(write_report(tmp_path / "it.ncu-rep", DEMO_LAUNCHES)).details
    assert details is not None
    content, schema = pack(details).content, 1
    content = {"cut": content[:-9], "noise": b"\0" * 50, "schema": content}[harm]

    with pytest.raises(DetailsError):
        unpack(content, schema + (harm == "schema"))


@needs_samples
def test_a_launch_that_failed_is_told_from_one_with_a_few_nans(read):
    failed = [
        launch.index
        for name in ("a10g-ncu2023.1-failed-kernel-nan", "h800-ncu2023.3-pytorch-nvtx-nan")
        for launch in read(f"{name}.ncu-rep").launches
        if launch.failed
    ]

    assert failed == [3, 4]
    assert not any(launch.failed for launch in read("a100-ncu2023.3-source-nan.ncu-rep").launches)


@needs_samples
def test_findings_have_their_estimates(read):
    (launch,) = read("b200-ncu2025.2-cublaslt-basic.ncu-rep").launches

    found = {each.rule: each for each in launch.findings}
    assert found["LaunchConfiguration"].speedup == pytest.approx(56.7568, abs=1e-4)
    assert found["LaunchConfiguration"].speedup_kind == "global"
    assert found["AchievedOccupancy"].speedup_kind == "local"
    assert found["SOLBottleneck"].speedup is None
    assert found["SOLBottleneck"].focus[0].metric == "launch__waves_per_multiprocessor"
    assert (launch.context, launch.stream) == (1, 20)


@needs_samples
def test_hot_spots_have_sass_line_and_source_where_the_report_has_them(read):
    (launch,) = read("a100-ncu2023.3-source-nan.ncu-rep").launches

    hottest = launch.hot_spots[0]
    assert (hottest.samples, hottest.instructions, len(launch.hot_spots)) == (
        47_099,
        270_000_000,
        20,
    )
    assert next(iter(hottest.stalls)) == "math_pipe_throttle"
    assert hottest.sass == "HMMA.16816.F32 R20, R4, R8, R20"
    assert (hottest.file, hottest.line) == ("mmaPTXTest.cu", 215)
    assert "smem_ptr" in hottest.source
    assert read("a100-ncu2023.3-source-nan.ncu-rep").source_problem == ""


@needs_samples
def test_without_line_information_the_details_say_so(read):
    """FR-22"""
    details = read("t4-ncu2024.2-full.ncu-rep")

    assert "without line information" in details.source_problem
    assert details.launches[0].hot_spots[0].sass == "FADD R9, R4, R3"
    assert read("t4-ncu2025.1-basic.ncu-rep").source_problem == ""  # no hot spots, nothing to say


@needs_samples
def test_a_crash_on_the_sources_costs_only_the_sources():
    facts = read_report(sample("hostile/extra-crash-source-files.ncu-rep"))

    assert (facts.problem, facts.launch_count) == ("", 1)
    assert facts.details is not None
    assert facts.details.launches[0].metrics["gpu__time_duration.sum"] == 3232.0


@needs_samples
@pytest.mark.parametrize(
    ("program", "sass", "words"),
    [
        ("import os; os.kill(os.getpid(), 11)", False, "SIGSEGV"),
        (
            "print('{\"spots\": []}', flush=True); import os; os.kill(os.getpid(), 11)",
            False,
            "SIGSEGV",
        ),
        ("print('nonsense')", False, "could not be read"),
        ("import time; time.sleep(600)", False, "time limit"),
    ],
)
def test_a_source_reader_that_goes_wrong_leaves_the_hot_spots(read, tmp_path, program, sass, words):
    details = read("t4-ncu2024.2-full.ncu-rep")
    (tmp_path / "program.py").write_text(program)

    filled = with_sources(
        details,
        sample("t4-ncu2024.2-full.ncu-rep"),
        ChildLimits(wall_s=2 if "sleep" in program else 300),
        tmp_path / "program.py",
    )

    assert words in filled.source_problem
    assert filled.launches[0].hot_spots[0].samples == details.launches[0].hot_spots[0].samples


@needs_samples
@pytest.mark.parametrize(
    ("name", "launch", "bound"),
    [
        ("a100-ncu2023.3-source-nan", 0, Bound.COMPUTE),
        ("t4-ncu2024.2-full", 0, Bound.MEMORY),
        ("b200-ncu2025.2-cublaslt-basic", 0, Bound.OCCUPANCY),
        ("h800-ncu2023.3-pytorch-nvtx-nan", 4, Bound.UNKNOWN),
        ("gh200-ncu2025.1-triton-nosections", 0, Bound.UNKNOWN),
    ],
)
def test_what_bounds_a_launch_is_told_with_its_numbers(read, name, launch, bound):
    summary = summarise(read(f"{name}.ncu-rep"))

    assert summary.launches[launch].bound is bound
    assert summary.launches[launch].bound_because


@needs_samples
def test_where_to_look_first_is_the_launch_that_takes_the_most_time(read):
    summary = summarise(read("h800-ncu2023.3-pytorch-nvtx-nan.ncu-rep"))

    first = summary.launches[summary.look_first or 0]
    durations = [launch.numbers["duration_ns"] or 0 for launch in summary.launches]
    assert first.numbers["duration_ns"] == max(durations)
    assert first.stalls[0].reason == "not_selected"
    assert first.findings[0].rule == "LaunchConfiguration"


def test_ranges_of_both_kinds_are_told_apart(tmp_path):
    launch = Launch(name="k", nvtx=("outer", "inner"), nvtx_start_end=("across threads",))

    details = read_report(write_report(tmp_path / "it.ncu-rep", [launch])).details

    assert details is not None
    (domain,) = details.launches[0].nvtx
    assert (domain.push_pop, domain.start_end) == (("outer", "inner"), ("across threads",))


def test_values_beyond_the_limit_are_counted(tmp_path):
    metrics = {f"unit__{n:05}.sum": float(n) for n in range(2_000)}
    launches = [Launch(name=f"k{n}", metrics=metrics) for n in range(101)]

    details = read_report(write_report(tmp_path / "it.ncu-rep", launches)).details

    assert details is not None
    assert details.metrics_left_out == 2_000
    assert details.launches[-1].metric_count == 2_000
    assert details.launches[-1].metrics == {}


@needs_samples
def test_one_launch_is_read_alone_as_it_is_among_all(read):
    details = read("a10g-ncu2023.1-failed-kernel-nan.ncu-rep")
    packed = pack(details)

    one = unpack(packed.content, packed.schema, launch=2)

    assert one == replace(details, launches=(details.launches[2],))
    assert unpack(packed.content, packed.schema, launch=7).launches == ()
    with pytest.raises(DetailsError):
        unpack(packed.content[:-9], packed.schema, launch=2)
