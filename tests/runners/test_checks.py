from __future__ import annotations

import pytest

from runners import checks
from runners.registry import GpuType


def ids(messages):
    return [message.id for message in messages]


def test_the_defaults_are_in_order(settings):
    settings.DEBUG = True
    for check in (
        checks.check_time_limits,
        checks.check_fake_runner,
        checks.check_recorded_archive,
        checks.check_ncu_versions,
        checks.check_local_run_user,
        checks.check_counts,
    ):
        assert check() == []


@pytest.mark.parametrize(
    ("name", "value", "check"),
    [
        ("JOB_LIMIT_S", 959, "runners.E001"),
        ("RUN_WALL_S", 3119, "runners.E002"),
        ("STREAM_LIMIT_S", 3600, "runners.E003"),
        ("LEASE_S", 2, "runners.E004"),
    ],
)
def test_time_limits_lie_within_each_other(settings, name, value, check):
    """FR-24: our own limit strikes before the provider's."""
    setattr(settings, name, value)

    [error] = checks.check_time_limits()

    assert error.id == check
    assert f"({value:g} s)" in error.msg or name == "STREAM_LIMIT_S"


def test_the_fake_runner_is_refused_in_production(settings):
    settings.GPU_TYPES = {"B200": GpuType(name="B200", runner="fake")}
    settings.DEBUG = False

    [error] = checks.check_fake_runner()

    assert error.id == "runners.E005"
    assert "B200" in error.msg


def test_the_recorded_runner_needs_its_archive(settings, tmp_path):
    settings.GPU_TYPES = {"B200": GpuType(name="B200", runner="recorded")}
    settings.RECORDED_ARCHIVE = tmp_path / "capture.zip"
    assert ids(checks.check_recorded_archive()) == ["runners.E006"]

    settings.RECORDED_ARCHIVE.write_bytes(b"")

    assert checks.check_recorded_archive() == []


def test_profiler_versions_are_of_runners_that_exist(settings):
    settings.NCU_VERSIONS = {"modal": "2025.2.1", "locall": "2025.2.1"}

    [error] = checks.check_ncu_versions()

    assert (error.id, "locall" in error.msg) == ("runners.E007", True)


@pytest.mark.parametrize("user", ["", "no-such-user-here", "root"])
def test_submissions_never_run_as_root(settings, monkeypatch, user):
    monkeypatch.setattr(checks.os, "geteuid", lambda: 0)
    settings.GPU_TYPES = {"CPU": GpuType(name="CPU", runner="local")}
    settings.LOCAL_RUN_USER = user

    assert ids(checks.check_local_run_user()) == ["runners.E008"]


@pytest.mark.parametrize("name", ["IN_FLIGHT_PER_USER", "MAX_ATTEMPTS"])
def test_counts_that_would_stop_all_work_are_refused(settings, name):
    setattr(settings, name, 0)

    [error] = checks.check_counts()

    assert (error.id, name in error.msg) == ("runners.E009", True)
