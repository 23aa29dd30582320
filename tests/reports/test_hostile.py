"""Every damaged report beside the checkout gets its verdict; nothing is taken from a list by hand."""

from __future__ import annotations

import hashlib

from profiling.reports.reader import read_report
from profiling.reports.verdict import Asked, Verdict, judge
from tests.reports.samples import INDEX, SAMPLES, each_sample, needs_samples, sample

VERDICTS = {
    "empty": Verdict.UNREADABLE,
    "extra-crash-source-files": Verdict.DEGRADED,  # of another GPU and NCU than asked
    "garbage-1k-middle": Verdict.UNREADABLE,
    "magic-only-4-bytes": Verdict.UNREADABLE,
    "random-after-magic": Verdict.UNREADABLE,
    "truncated-50pct": Verdict.UNREADABLE,
}


@needs_samples
def test_every_hostile_file_has_its_verdict_and_crashes_nothing():
    """FR-04"""
    assert SAMPLES is not None
    asked = Asked(gpu="B200", ncu_version="2025.2.1")

    found = {
        path.stem: judge(read_report(path), asked, run_failed=False).verdict
        for path in (SAMPLES / "hostile").glob("*.ncu-rep")
    }

    assert found == VERDICTS


@needs_samples
def test_the_index_leaves_no_real_report_out():
    assert SAMPLES is not None
    assert {said["file"] for said in INDEX} == {path.name for path in SAMPLES.glob("*.ncu-rep")}


@each_sample
def test_each_real_report_is_the_one_that_the_index_tells_of(said):
    content = sample(said["file"]).read_bytes()

    assert (len(content), hashlib.sha256(content).hexdigest()) == (said["size"], said["sha256"])
