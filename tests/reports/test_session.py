from __future__ import annotations

import json
import struct

import pytest

from profiling.reports.session import Session, read_session
from runners.gpu.report_framing import FramingError
from tests.reports.samples import each_sample, needs_samples, sample
from tests.synthetic_reports import DEMO_LAUNCHES, write_report

WITHOUT_DRIVER = ("2025.1.", "2025.2.")


@each_sample
def test_a_real_report_says_what_made_it(said):
    """FR-23"""
    session = read_session(sample(said["file"]))

    assert session.ncu_version == f"{said['ncu_version']} (public-release)"
    assert said["ncu_version"].startswith(f"{session.ncu_release}.0 (build")
    assert session.gpu_name == said["gpu"]
    major, minor = session.cuda_version.split(".")
    assert (major.isdigit(), minor.isdigit()) == (True, True)
    assert bool(session.driver_version) != session.ncu_version.startswith(WITHOUT_DRIVER)


@needs_samples
@pytest.mark.parametrize(
    ("name", "cuda", "driver"),
    [
        ("b200-ncu2025.2-cublaslt-basic", "13.1", ""),  # as in text/b200-session.csv
        ("rtx4060-ncu2024.1-windows-full", "12.5", "556.12"),
        ("rtx5000-ncu2023.2-appreplay-roofline", "12.2", "535.54.03"),  # devices stand last
        ("rtx3070-ncu2022.3-vectoradd", "11.7", "515.43.04"),
    ],
)
def test_cuda_and_driver_of_real_reports(name, cuda, driver):
    session = read_session(sample(f"{name}.ncu-rep"))

    assert (session.cuda_version, session.driver_version) == (cuda, driver)


@needs_samples
def test_nothing_private_is_read_out():
    """FR-22: host, addresses, user and command line stand in the same blocks."""
    session = read_session(sample("b200-ncu2025.2-cublaslt-basic.ncu-rep"))

    said = json.dumps(session.to_json())
    assert not any(mark in said for mark in ("host", "192.", "fe80", "user", "/", "algo23", "#96"))
    assert session.settings.set == "basic"


def test_a_report_of_another_profiler_gpu_and_driver_says_so(tmp_path):
    """FR-23"""
    path = write_report(
        tmp_path / "it.ncu-rep",
        DEMO_LAUNCHES,
        ncu_version="2024.1.0.0 (build 7) (synthetic)",
        gpu="NVIDIA H100 (synthetic)",
        cuda="12.4",
        driver="550.54.15",
    )

    session = read_session(path)

    assert session == Session(
        ncu_version="2024.1.0.0 (build 7) (synthetic)",
        gpu_name="NVIDIA H100 (synthetic)",
        cuda_version="12.4",
        driver_version="550.54.15",
    )
    assert session.ncu_release == "2024.1.0"


def test_what_a_report_does_not_say_stays_empty(tmp_path):
    path = write_report(
        tmp_path / "it.ncu-rep", DEMO_LAUNCHES, ncu_version=None, gpu=None, cuda=None, driver=None
    )

    assert read_session(path) == Session()
    assert Session().ncu_release == ""


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("2025.2.1.0 (build 35987062) (public-release)", "2025.2.1"),
        ("2025.2.1", "2025.2.1"),
        ("2025.2.1.0, 2026.2.0.0", ""),
        ("2025.2", ""),
        ("2025.2.1.0\N{REPLACEMENT CHARACTER}", ""),
        ("about 2025.2.1.0", ""),
    ],
)
def test_the_release_is_named_only_where_exactly_one_is_said(version, release):
    assert Session(ncu_version=version).ncu_release == release


def block(details):
    header = b"\x1a" + bytes([len(details)]) + details + b"\x28\x00"
    return struct.pack("<I", len(header)) + header


def version_info(provider, version):
    message = (
        b"\x0a" + bytes([len(provider)]) + provider + b"\x12" + bytes([len(version)]) + version
    )
    return b"\x42" + bytes([len(message)]) + message


def test_versions_that_differ_are_all_said(tmp_path):
    path = write_report(tmp_path / "it.ncu-rep", [], ncu_version="2025.2.1.0")
    with path.open("ab") as report:
        report.write(block(version_info(b"Nsight Compute Target", b"2026.2.0.0")))
        report.write(block(version_info(b"Nsight Compute Target", b"2025.2.1.0")))

    session = read_session(path)

    assert (session.ncu_version, session.ncu_release) == ("2025.2.1.0, 2026.2.0.0", "")


@pytest.mark.parametrize(
    "details",
    [
        b"\x42\x7f\x0a",  # longer than what holds it
        b"\x42\x02\x0a\x7f",  # longer inside
        b"\x42",
        b"\xff" * 30,
        b"\x47\x00",  # a wire type that is none
        b"\x43\x44",  # groups, given up long ago
        version_info(b"CUDA Version", b"\xff\xfe"),
        b"\x42\x12\x0a\x0cCUDA Version\x12\x7f13",  # a version that is cut is none
        version_info(b"Some Day Version", b"1"),
    ],
)
def test_damaged_and_unknown_details_are_no_crash_and_no_guess(tmp_path, details):
    path = write_report(tmp_path / "it.ncu-rep", DEMO_LAUNCHES, cuda=None)
    with path.open("ab") as report:
        report.write(block(details))

    session = read_session(path)

    assert session.ncu_release == "2025.2.1"
    assert session.cuda_version in {"", "\N{REPLACEMENT CHARACTER}" * 2}


def test_fields_of_a_later_schema_are_passed_over(tmp_path):
    unknown = (
        b"\xa8\x06\x96\x01"
        + b"\xaa\x06\x01x"
        + b"\xa9\x06"
        + b"\xff" * 8
        + b"\xad\x06"
        + b"\xff" * 4
    )
    path = write_report(tmp_path / "it.ncu-rep", DEMO_LAUNCHES, cuda=None)
    with path.open("ab") as report:
        report.write(block(unknown + version_info(b"CUDA Version", b"13.1")))

    assert read_session(path).cuda_version == "13.1"


def test_hostile_versions_are_made_storable_and_cut(tmp_path):
    path = write_report(
        tmp_path / "it.ncu-rep", [], ncu_version="1\0\x1b[2J" * 90, gpu="G" * 60_000, driver="\n"
    )

    session = read_session(path)

    assert (len(session.ncu_version), len(session.gpu_name)) == (100, 200)
    assert not any(char in session.ncu_version + session.driver_version for char in "\0\x1b\n")


def test_a_cut_file_is_a_framing_error(tmp_path):
    path = write_report(tmp_path / "it.ncu-rep", DEMO_LAUNCHES)
    path.write_bytes(path.read_bytes()[:50])

    with pytest.raises(FramingError):
        read_session(path)
