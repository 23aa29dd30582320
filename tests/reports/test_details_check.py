"""The runner's CSV beside the report: FR-18's shapes, and values that are not the report's."""

from __future__ import annotations

import pytest

from profiling.reports.details import ReportDetails
from profiling.reports.details_check import check_details, decoded
from profiling.reports.reader import read_report
from tests.reports.samples import needs_samples, sample


@pytest.fixture(scope="module")
def details() -> ReportDetails:
    found = read_report(sample("b200-ncu2025.2-cublaslt-basic.ncu-rep")).details
    assert found is not None
    return found


@pytest.fixture(scope="module")
def content() -> bytes:
    return sample("text/b200-details.csv").read_bytes()


@needs_samples
@pytest.mark.parametrize(
    "noise",
    [b"", b"==PROF== Connected\n==PROF== 1\n==PROF== 2\nresult: 7, 8\nbye\n"],
    ids=["as ncu wrote it", "behind other output"],
)
def test_ncu_s_own_csv_differs_in_nothing(details, content, noise):
    """FR-18 (a), (c)"""
    checked = check_details(details, decoded(noise + content))

    assert (checked.rows, checked.differing_count) == (51, 0)


@needs_samples
def test_thousands_separators_are_no_difference(details, content):
    checked = check_details(details, decoded(content.replace(b'"57528"', b'"57,528"')))

    assert checked.differing_count == 0


@needs_samples
def test_columns_are_found_by_name(details):
    """FR-18 (d)"""
    header = '"new","Metric Value","Metric Unit","Metric Name","Section Name","ID"\n'
    row = '"x","49.95","us","Duration","GPU Speed Of Light Throughput","0"\n'

    checked = check_details(details, [header, row])

    assert (checked.rows, checked.differing_count) == (1, 50)
    assert not any("Duration" in words for words in checked.differing)


@needs_samples
def test_another_value_is_named_with_both(details, content):
    changed = content.replace(b'"us","49.95"', b'"us","12.00"')

    checked = check_details(details, decoded(changed))

    assert checked.differing == ("Duration of launch 0 is 12.00 us there, 49.95 us here",)


@needs_samples
@pytest.mark.parametrize(
    "lines",
    [
        [],
        ['"ID","Section Name","Metric Name","Metric Unit","Metric Value"\n'],
        ["a,b\n", "1,2\n"],
        ['"ID","Kernel Name","gpu__time_duration.sum"\n', '"","","us"\n', '"0","k","49.95"\n'],
        ['"' * 99, "\0\n", "x" * 300_000],
    ],
    ids=["nothing", "header only", "another table", "the raw page", "no CSV at all"],
)
def test_what_has_no_rows_has_none_and_is_no_crash(details, lines):
    """FR-18 (b), (e), (f)"""
    assert check_details(details, lines).rows == 0
