"""Details exports of our own against what ncu itself printed."""

from __future__ import annotations

import csv
import io
import math
import re
import textwrap

import pytest

from profiling.reports.csv_safe import row
from profiling.reports.details import MetricState
from profiling.reports.export import RULE_WIDTH, details_csv, details_text, shown
from profiling.reports.reader import read_report
from tests.reports.samples import needs_samples, sample
from tests.synthetic_reports import Launch, write_report

# Of the machine and the process, which ours leave empty.
UNTOLD = ("Process ID", "Process Name", "Host Name")
NAMESPACE = re.compile(r"\b\w+::")


def details_of(path):
    details = read_report(path).details
    assert details is not None
    return details


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


@needs_samples
def test_each_row_of_the_b200_csv_is_ncu_s_own():
    ours = rows_of(
        "".join(details_csv(details_of(sample("b200-ncu2025.2-cublaslt-basic.ncu-rep"))))
    )
    theirs = rows_of(sample("text/b200-details.csv").read_text())

    assert len(ours) == len(theirs)
    for mine, told in zip(ours, theirs, strict=True):
        # ncu leaves namespaces out of the names of kernels, ours are whole.
        mine["Kernel Name"] = NAMESPACE.sub("", mine["Kernel Name"])
        assert {name: mine[name] for name in mine if name not in UNTOLD} == {
            name: told[name] for name in told if name not in UNTOLD
        }
        assert [mine[name] for name in UNTOLD] == ["", "", ""]


@needs_samples
def test_the_lines_of_the_b200_csv_have_as_many_fields_as_ncu_s():
    ours = details_csv(details_of(sample("b200-ncu2025.2-cublaslt-basic.ncu-rep")))
    theirs = sample("text/b200-details.csv").read_text().splitlines(keepends=True)

    assert [len(next(csv.reader([line]))) for line in ours] == [
        len(next(csv.reader([line]))) for line in theirs
    ]


@needs_samples
@pytest.mark.parametrize(
    "name", ["details-12-kernels.txt", "details-t4-numba.txt", "details-failed-launch-nan.txt"]
)
def test_units_and_rounding_of_ncu_s_text_are_reached_from_base_units(name):
    """What a number was before it was rounded is not known: it must be a fixed point."""
    units = {"us": ("ns", 1e3), "ms": ("ns", 1e6), "Ghz": ("hz", 1e9), "Mhz": ("hz", 1e6)}
    units |= {"Kbyte": ("byte", 1e3), "Mbyte": ("byte", 1e6), "Gbyte": ("byte", 1e9)}
    seen = 0
    for line in sample(f"text/{name}").read_text().splitlines():
        words = line.split()
        if len(words) < 3 or words[-2].partition("/")[0] not in units:
            continue
        unit, _, per = words[-2].partition("/")
        base, factor = units[unit]
        value, told = shown(float(words[-1].replace(",", "")) * factor, f"{base}{per and '/'}{per}")
        assert (float(value), told) == (float(words[-1].replace(",", "")), words[-2])
        seen += 1
    assert seen or "failed" in name


@needs_samples
def test_the_text_of_the_b200_report_has_the_form_of_ncu_s():
    text = "".join(details_text(details_of(sample("b200-ncu2025.2-cublaslt-basic.ncu-rep"))))

    assert text.startswith("  void cutlass::Kernel2<cutlass_80_wmma_tensorop")
    assert "Params) (64, 1, 1)x(256, 1, 1), Context 1, Stream 20, Device 0, CC 10.0\n" in text
    assert "    Duration                         us        49.95\n" in text
    assert "    OPT   Est. Local Speedup: 49.98%\n" in text
    assert "\n    Metric Name             Metric Unit Metric Value\n" in text
    assert max(map(len, text.splitlines()[1:])) <= 120


@needs_samples
def test_rules_are_wrapped_where_ncu_wraps_them():
    theirs = sample("text/details-12-kernels.txt").read_text()
    wrapped = theirs.split("Est. Speedup: 66.67%")[1].split("\n\n")[0].split("\n")[1:]
    message = " ".join(line.strip() for line in wrapped)

    assert textwrap.wrap(message, RULE_WIDTH, break_on_hyphens=False) == [
        line.strip() for line in wrapped
    ]


@needs_samples
def test_a_failed_launch_shows_what_it_lacks_as_ncu_does():
    text = "".join(details_text(details_of(sample("a10g-ncu2023.1-failed-kernel-nan.ncu-rep"))))
    *_, failed = re.split(r"^  (?=\S)", text, flags=re.MULTILINE)

    assert "(0, 0, 0)x(0, 0, 0)" in text
    assert "    Duration                         ns      (!) nan\n" in text
    assert re.search(r"\n    Grid Size +\(!\) n/a\n", failed)
    assert failed.count("    ERR   ") > 1


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (49_952.0, "ns", ("49.95", "us")),
        (999.0, "ns", ("999", "ns")),
        (1_000.0, "ns", ("1", "us")),
        (135_168, "byte", ("135.17", "Kbyte")),
        (1_131_120_876.04, "hz", ("1.13", "Ghz")),
        (197_740_000_000.0, "byte/s", ("197.74", "Gbyte/s")),
        (991.125, "cycle", ("991.12", "cycle")),
        (12_753_920.0, "cycle", ("12753920", "cycle")),
        (8.003, "warp", ("8.00", "warp")),
        (25.0, "%", ("25", "%")),
        ("all", "", ("all", "")),
        (2.5e13, "ns", ("25000", "s")),
    ],
)
def test_numbers_and_units_as_ncu_shows_them(value, unit, expected):
    assert shown(value, unit) == expected


def test_what_has_no_value_is_marked_and_never_zero():
    assert shown(None, "%", MetricState.NAN) == ("(!) nan", "%")
    assert shown(None, "%", MetricState.INF) == ("(!) inf", "%")
    assert shown(None, "%", MetricState.NO_VALUE) == ("(!) n/a", "%")


def test_names_cannot_become_formulas_of_a_spreadsheet(tmp_path):
    launch = Launch(
        name='=cmd|"/c calc"!A1', metrics={"a": math.nan, "gpu__time_duration.sum": 1.0}
    )
    details = details_of(write_report(tmp_path / "it.ncu-rep", [launch]))

    lines = list(details_csv(details))

    assert len(lines) == 1  # no section, no row
    assert "'=cmd" in row_of(("=cmd",))
    assert row_of(("-1.5", "-x", "+1", "@a", "a=b")) == '"-1.5","\'-x","\'+1","\'@a","a=b"\n'


def row_of(fields):
    return row(fields)
