from __future__ import annotations

import io
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from leaderboards.models import AuditEvent, TaskRevision
from profiling.models import Capture, ProfileRequest
from tests.conftest import make_definition
from tests.profiling.evidence import finish
from tests.profiling.orders import submit


@pytest.fixture
def request_of_alice(alice, rowsum) -> ProfileRequest:
    return submit(alice)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def rerun(
    *ids: object, stderr: io.StringIO | None = None, **options: Any
) -> tuple[list[str], str, str]:
    """Printed ids, what stood on standard error, and the final error."""
    out, err, ended = io.StringIO(), stderr or io.StringIO(), ""
    try:
        call_command("rerun_profile", *map(str, ids), stdout=out, stderr=err, **options)
    except CommandError as error:
        ended = f"{error.returncode}: {error}"
    return out.getvalue().split(), err.getvalue(), ended


def test_it_prints_the_ids_of_new_requests(request_of_alice, alice):
    printed, said, ended = rerun(request_of_alice.pk, request_of_alice.pk)

    assert (len(printed), said, ended) == (2, "", "")
    for key in printed:
        made = ProfileRequest.objects.get(pk=key)
        assert (made.rerun_of, made.origin, made.user) == (request_of_alice, "command", alice)
    asked = AuditEvent.objects.filter(verb="profile.rerun_asked")
    assert set(asked.values_list("actor", "actor_label")) == {(None, "system")}


def test_it_names_bad_ids_and_does_the_others(request_of_alice):
    unknown = uuid.uuid4()

    printed, said, ended = rerun("no-id", request_of_alice.pk, unknown)

    assert ProfileRequest.objects.get(pk=printed[0]).rerun_of == request_of_alice
    assert "no-id: this is not the id of a request" in said
    assert f"{unknown}: there is no such request" in said
    assert ended == "1: 2 of 3 could not be measured again"


@pytest.fixture
def profiles(measure, alice) -> list[ProfileRequest]:
    """Ended, on B200, H100 and B200; of NCU 2026.2, 2025.2 and 2026.2; the last two degraded."""
    made = []
    for gpu, version, verdict in (
        ("B200", "2026.2.0.0", "complete"),
        ("H100", "2025.2.1.0", "degraded"),
        ("B200", "2026.2.0.0", "degraded"),
    ):
        request = measure(alice, order={"gpu_name": gpu})
        finish(request.job)
        Capture.objects.filter(request=request).update(ncu_version=version, verdict=verdict)
        ProfileRequest.objects.filter(pk=request.pk).update(verdict=verdict)
        made.append(request)
    return made


def ids(*requests: ProfileRequest) -> list[str]:
    return [str(request.pk) for request in requests]


@pytest.mark.parametrize(
    ("filters", "places"),
    [
        ({"ncu_version": "2026.2"}, [0, 2]),
        ({"ncu_version": "2026.2.0.0"}, [0, 2]),
        ({"ncu_version": "2026"}, [0, 2]),
        ({"ncu_version": "202"}, []),
        ({"gpu": "h100"}, [1]),
        ({"verdict": "degraded"}, [1, 2]),
        ({"ncu_version": "2026.2", "verdict": "degraded"}, [2]),
        ({"gpu": "B200", "limit": 1}, [0]),
        ({"since": "2020-01-01"}, [0, 1, 2]),
        ({"since": "2999-01-01T00:00:00"}, []),
    ],
)
def test_filters_choose_by_what_was_measured_and_a_dry_run_only_lists(profiles, filters, places):
    options = [f"--{name.replace('_', '-')}={value}" for name, value in filters.items()]

    printed, said, ended = rerun(*options, "--dry-run")

    assert (printed, said, ended) == (ids(*(profiles[place] for place in places)), "", "")
    assert ProfileRequest.objects.count() == 3


def test_what_was_measured_again_is_not_taken_a_second_time(profiles):
    first, *_ = rerun(verdict="degraded", limit=1)
    second, *_ = rerun(verdict="degraded")

    made = ProfileRequest.objects.filter(pk__in=first + second).order_by("created_at")
    assert [each.rerun_of_id for each in made] == [profiles[1].pk, profiles[2].pk]
    assert rerun(verdict="degraded") == ([], "", "")


def test_what_runs_or_was_deleted_is_not_chosen(profiles, alice):
    submit(alice)
    ProfileRequest.objects.filter(pk=profiles[0].pk).update(deleted_at=timezone.now())

    printed, *_ = rerun(gpu="B200", dry_run=True)

    assert printed == ids(profiles[2])


def test_the_newest_revision_of_the_task_is_taken_when_it_is_asked_for(profiles, rowsum):
    benchmarks = ({"size": 4096, "seed": 9},)
    task = make_definition(benchmarks=benchmarks, seed=77)
    rowsum.current_revision = TaskRevision.objects.create(
        leaderboard=rowsum, definition_json=task.to_json(), sha256=task.sha256
    )
    rowsum.save()

    (same,), *_ = rerun(profiles[0].pk)
    (newest,), *_ = rerun(profiles[0].pk, revision="newest")

    old, new = (ProfileRequest.objects.get(pk=key) for key in (same, newest))
    assert (old.revision, old.benchmark_specs) == (
        profiles[0].revision,
        profiles[0].benchmark_specs,
    )
    assert (new.revision, new.benchmark_specs, new.seed) == (
        rowsum.current_revision,
        {"0": benchmarks[0]},
        77,
    )
    assert new.config_sha256 != old.config_sha256


def test_a_benchmark_that_the_newest_revision_lacks_is_told(measure, alice, rowsum):
    request = measure(alice, index=2)
    task = make_definition(benchmarks=({"size": 4096, "seed": 9},))
    rowsum.current_revision = TaskRevision.objects.create(
        leaderboard=rowsum, definition_json=task.to_json(), sha256=task.sha256
    )
    rowsum.save()

    printed, said, ended = rerun(request.pk, revision="newest")

    assert printed == []
    assert "benchmark_index 2 is out of range" in said
    assert ended == "1: 1 of 1 could not be measured again"


def test_a_terminal_is_told_how_far_it_is(profiles):
    _, said, _ = rerun(verdict="degraded", dry_run=True, stderr=Terminal())

    assert said == "1 of 2\r2 of 2\n"


def test_ids_or_filters_are_wanted_and_not_both(profiles):
    for options in ((), (*ids(profiles[0]), "--gpu=B200")):
        assert rerun(*options)[2] == "1: give either ids or filters"


def test_a_request_is_chosen_by_the_day_on_which_it_was_asked_for(profiles):
    ProfileRequest.objects.filter(pk=profiles[0].pk).update(
        created_at=timezone.now() - timedelta(days=40)
    )
    since = f"{timezone.now() - timedelta(days=30):%Y-%m-%d}"

    assert rerun(f"--since={since}", "--dry-run")[0] == ids(*profiles[1:])
    assert "a date or a time" in rerun("--since=yesterday")[2]
