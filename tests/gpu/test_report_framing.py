"""The walk through a report's framing: every cut is found, and every launch counted."""

from __future__ import annotations

import json
import random
import struct

import pytest

from runners.gpu import report_framing
from runners.gpu.report_framing import FramingError, KernelNames, read_framing
from tests.shared import SHARED
from tests.synthetic_reports import Launch, write_report

needs_samples = pytest.mark.skipif(SHARED is None, reason="no shared samples beside the checkout")
SAMPLES = json.loads((SHARED / "ncu-samples" / "index.json").read_text()) if SHARED else []


def sized(message: bytes) -> bytes:
    return struct.pack("<I", len(message)) + message


HEADER = b"NVR\0" + sized(b"\x08\x07")


@needs_samples
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["file"])
def test_real_reports_hold_the_launches_that_the_index_tells(sample):
    framing = read_framing(SHARED / "ncu-samples" / sample["file"])

    assert framing.launches == sample["actions"]
    assert framing.nameless == 0
    names = [kernel.function for kernel in framing.kernels[:5]]
    assert names == sample["kernel_names_first5"]
    assert (framing.range_results, framing.cmdlist_results, framing.graph_results) == (0, 0, 0)


@needs_samples
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("empty", "cut at byte 0"),
        ("garbage-1k-middle", "broken at byte 49777"),
        ("magic-only-4-bytes", "cut at byte 4"),
        ("random-after-magic", "cut at byte 4"),
        ("truncated-50pct", "cut in block 13"),
    ],
)
def test_hostile_reports_are_refused_with_the_place(name, reason):
    with pytest.raises(FramingError, match=reason):
        read_framing(SHARED / "ncu-samples" / "hostile" / f"{name}.ncu-rep")


@needs_samples
def test_damage_inside_a_value_does_not_show_in_the_framing():
    path = SHARED / "ncu-samples" / "hostile" / "extra-crash-source-files.ncu-rep"
    assert read_framing(path).launches == 1


def test_every_cut_of_a_report_is_found(tmp_path):
    whole = write_report(
        tmp_path / "whole.ncu-rep",
        [Launch(name="a", metrics={"gpu__time_duration.sum": 1.0}), Launch(name="b")],
    )
    content = whole.read_bytes()
    boundaries = 0
    for length in range(len(content)):
        cut = tmp_path / "cut.ncu-rep"
        cut.write_bytes(content[:length])
        try:
            assert read_framing(cut).launches < 2
            boundaries += 1  # a cut between two blocks leaves a whole file with fewer launches
        except FramingError:
            pass
    assert boundaries < 10
    assert read_framing(whole).launches == 2


def test_names_are_told_in_their_three_forms(tmp_path):
    launch = Launch(name="k", mangled="_Z1kv", demangled="void k()")
    framing = read_framing(write_report(tmp_path / "r.ncu-rep", [launch]))
    assert framing.kernels == (KernelNames(function="k", mangled="_Z1kv", demangled="void k()"),)


def test_a_launch_without_a_name_is_counted_as_such(tmp_path):
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(HEADER + sized(b"\x10\x01\x28\x06") + sized(b"\x08\x01"))
    framing = read_framing(path)
    assert (framing.launches, framing.nameless) == (1, 1)


def test_a_launch_that_is_no_message_is_refused(tmp_path):
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(HEADER + sized(b"\x10\x01\x28\x2c") + sized(b"\xff" * 40))
    with pytest.raises(FramingError, match="broken at byte"):
        read_framing(path)


def test_whole_graphs_are_counted_apart(tmp_path):
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(HEADER + sized(b"\x48\x02\x28\x0c") + 2 * sized(b"\x08\x01"))
    framing = read_framing(path)
    assert (framing.launches, framing.graph_results) == (0, 2)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PK\x03\x04", "NVR"),
        (b"NVR\0" + sized(b""), "file header is empty"),
        (HEADER + sized(b"\x10\xff\xff\xff\xff\x0f"), "no room for the length"),
        (HEADER + sized(b"\x28\x05"), "ends at byte"),
        (HEADER + sized(b"\x28\x05") + b"12345", "should end at byte"),
        (HEADER + sized(b"\x10\x01\x28\x06") + sized(b"\x2a\x7f"), "longer than its message"),
        (HEADER + sized(b"\x80" * 12), "a number without an end"),
        (HEADER + sized(b"\x0c"), "no field of a message"),
        (HEADER + b"\xff\xff\xff\x7f", "longer than what is left"),
    ],
)
def test_broken_files_are_refused(tmp_path, content, reason):
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(content)
    with pytest.raises(FramingError, match=reason):
        read_framing(path)


def test_a_file_made_to_take_for_ever_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(report_framing, "MAX_PARTS", 1000)
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(HEADER + sized(b"") * 2000)
    with pytest.raises(FramingError, match="more than 1000"):
        read_framing(path)


def test_random_damage_never_raises_anything_else(tmp_path):
    content = write_report(tmp_path / "r.ncu-rep", [Launch(name="a"), Launch(name="b")])
    original = content.read_bytes()
    dice = random.Random(7)
    path = tmp_path / "damaged.ncu-rep"
    refused = 0
    for _ in range(500):
        damaged = bytearray(original)
        for _ in range(dice.randint(1, 8)):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        path.write_bytes(damaged)
        try:
            read_framing(path)
        except FramingError:
            refused += 1
    assert refused > 50
