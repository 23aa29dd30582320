"""The figures of GET /admin/stats."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from leaderboards.models import Run, Submission
from leaderboards.stats import iso_duration, read_stats
from runners.gpu.contract import Mode
from tests.leaderboards.conftest import a_stage, good_stages


def test_figures_have_the_names_and_types_of_the_reference(run, send, bob):
    run(good_stages(), good_stages())
    run({"test": a_stage(passed=False)}, mode=Mode.TEST, actor=bob, content=b"x = 1\n")
    send(Mode.TEST)
    Submission.objects.update(created_at="2026-11-30T11:59:30Z")

    stats = read_stats()

    assert stats == {
        "num_submissions": 3,
        "sub_waiting": 1,
        "num_users": 2,
        "num_run.B200": 7,
        "runs_passed.B200": 6,
        "runs_scored.B200": 2,
        "runs_secret.B200": 3,
        "max_delay.B200": "PT30S",
        "avg_delay.B200": "PT30S",
        "total_runtime.B200": "PT49S",
        "num_unique_codes": 2,
    }


def test_the_last_day_has_its_busiest_people_and_no_older_runs(run, send, bob):
    old = run({"test": a_stage()}, mode=Mode.TEST)
    Submission.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(hours=25))
    for actor_count, actor in ((2, bob), (1, old.user)):
        for _ in range(actor_count):
            send(Mode.TEST, actor=actor)

    stats = read_stats(last_day=True)

    assert stats == {
        "num_submissions": 3,
        "sub_waiting": 3,
        "num_users": 2,
        "total.id-bob": 2,
        "total.id-alice": 1,
    }


def test_figures_of_one_leaderboard(send, make_leaderboard):
    make_leaderboard("other")
    send(Mode.TEST)
    send(Mode.TEST, leaderboard_name="other")

    assert read_stats(leaderboard_name="Other")["num_submissions"] == 1
    assert read_stats(leaderboard_name="a\0b")["num_submissions"] == 0


def test_figures_cost_the_same_at_any_size(run, send, django_assert_num_queries):
    run(good_stages(), good_stages())
    assert Run.objects.count() == 6

    with django_assert_num_queries(3):
        read_stats()


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "PT0S"),
        (312, "PT5M12S"),
        (14.2, "PT14.2S"),
        (9 * 3600 + 180, "PT9H3M"),
        (86_400, "P1D"),
        (2 * 86_400 + 3661.5, "P2DT1H1M1.5S"),
        (-2, "-PT2S"),
    ],
)
def test_durations_are_iso_8601(seconds, shown):
    assert iso_duration(timedelta(seconds=seconds)) == shown
