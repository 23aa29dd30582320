"""Taking leaderboards away, and making those for trying a problem, as actions."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from leaderboards.boards import create_dev_leaderboard, delete_leaderboard
from leaderboards.exceptions import BadLeaderboard, LeaderboardInUse
from leaderboards.models import AuditEvent, Leaderboard, Run, Submission
from runners.gpu.contract import Mode
from tests.leaderboards.conftest import a_stage


def test_what_runs_is_cancelled_and_everything_is_kept_out_of_sight(send, run, olga, rowsum):
    run({"test": a_stage()}, mode=Mode.TEST)
    queued = send(Mode.TEST)

    with pytest.raises(LeaderboardInUse, match="2"):
        delete_leaderboard(rowsum, force=False, actor=olga)
    assert not Submission.objects.exclude(deleted_at=None).exists()
    delete_leaderboard(rowsum, force=True, actor=olga)

    queued.job.refresh_from_db()
    assert queued.job.status == "cancelled"
    assert not Submission.objects.filter(deleted_at=None).exists()
    assert (Submission.objects.count(), Run.objects.count()) == (2, 1)
    event = AuditEvent.objects.get(verb="leaderboard.deleted")
    assert (event.actor, event.data) == (olga, {"name": "rowsum", "submissions": 2})


def test_a_name_is_free_again_once_its_leaderboard_is_deleted(rowsum, make_leaderboard):
    delete_leaderboard(rowsum, force=False, actor=None)

    again = make_leaderboard("rowsum")

    assert list(Leaderboard.objects.existing()) == [again]
    assert Leaderboard.objects.filter(name="rowsum").count() == 2


@pytest.mark.parametrize("count", [1, 6])
def test_submissions_that_ended_cost_no_query_each(run, rowsum, count):
    for _ in range(count):
        run({"test": a_stage()}, mode=Mode.TEST)

    with CaptureQueriesContext(connection) as asked:
        delete_leaderboard(rowsum, force=True, actor=None)

    assert len(asked) <= 9


def test_a_problem_deeper_below_and_with_capitals_has_a_name_of_its_own(db, settings, tmp_path):
    settings.PROBLEMS_DIR = tmp_path
    (tmp_path / "Set/one").mkdir(parents=True)
    (tmp_path / "Set/eval.py").write_text("\n")
    (tmp_path / "Set/one/task.yml").write_text(
        "files: [{name: s.py, source: '@SUBMISSION@'}, {name: e.py, source: ../eval.py}]\n"
        "lang: py\ndescription: d\nconfig: {main: e.py}\ngpus: [B200]\n"
    )

    made = create_dev_leaderboard("Set/one", visibility=Leaderboard.Visibility.CLOSED, actor=None)

    assert (made.name, made.visibility, made.gpu_types) == ("set-one-dev", "closed", ["B200"])
    assert made.current_revision.directory == "Set/one"
    with pytest.raises(BadLeaderboard):
        create_dev_leaderboard("x" * 70, visibility=Leaderboard.Visibility.PUBLIC, actor=None)
