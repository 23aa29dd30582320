"""Reports with wrong bytes, lengths and ends, made from real ones and from ours: always a verdict."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from profiling.reports.reader import read_report
from profiling.reports.verdict import Asked, Verdict, judge
from runners.gpu.report_framing import FramingError, read_framing
from tests.reports.samples import SAMPLES
from tests.synthetic_reports import DEMO_LAUNCHES, write_report

ASKED = Asked(gpu="B200", ncu_version="2025.2.1")
BOUNDED = {"database": None, "derandomize": True, "deadline": None}


@cache
def reports() -> tuple[bytes, ...]:
    """The smaller real ones where they are, and one of our own."""
    with tempfile.TemporaryDirectory() as folder:
        own = write_report(Path(folder) / "own.ncu-rep", DEMO_LAUNCHES).read_bytes()
    real = sorted(SAMPLES.glob("*.ncu-rep")) if SAMPLES else []
    return (own, *(path.read_bytes() for path in real if path.stat().st_size < 2**20))


@st.composite
def damaged(draw) -> bytes:
    content = bytearray(draw(st.sampled_from(reports())))
    place = st.integers(0, len(content) - 1)
    for _ in range(draw(st.integers(1, 8))):
        match draw(st.sampled_from(["flip", "length", "cut", "insert", "repeat"])):
            case "flip":
                content[draw(place) % len(content)] ^= 1 << draw(st.integers(0, 7))
            case "length":
                at = draw(place) % len(content)
                content[at : at + 4] = draw(st.sampled_from([b"\xff" * 4, b"\0" * 4, b"\x7f" * 4]))
            case "cut":
                del content[max(1, draw(place)) :]
            case "insert":
                at = draw(place) % len(content)
                content[at:at] = draw(st.binary(min_size=1, max_size=64))
            case "repeat":
                at = draw(place) % len(content)
                content[at:at] = content[at : at + 4096]
    return bytes(content)


@settings(max_examples=300, suppress_health_check=list(HealthCheck), **BOUNDED)
@given(st.one_of(damaged(), st.binary(max_size=200), st.binary(max_size=200).map(b"NVR\0".__add__)))
@example(b"NVR\0" + b"\xff" * 64)
def test_the_framing_of_any_bytes_is_counted_or_refused_in_words(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.ncu-rep"
        path.write_bytes(content)
        launches, refused = 0, ""
        try:
            launches = read_framing(path).launches
        except FramingError as error:
            refused = str(error)

    assert refused or 0 <= launches <= len(content)


@settings(max_examples=12, suppress_health_check=list(HealthCheck), **BOUNDED)
@given(damaged())
def test_a_damaged_report_gets_a_verdict_whatever_it_does_to_the_library(content):
    """FR-04"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.ncu-rep"
        path.write_bytes(content)
        judged = judge(read_report(path), ASKED, run_failed=False)

    assert judged.verdict in set(Verdict)
    assert judged.verdict is Verdict.COMPLETE or judged.reasons
