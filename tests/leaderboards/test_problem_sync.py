from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from leaderboards.checkouts import without_credentials
from leaderboards.models import AuditEvent, Leaderboard
from leaderboards.problem_sync import SyncResult, sync_problems

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

COMPETITION = """\
name: Demo
problems:
  - {directory: one, name: one, deadline: "2030-01-31", gpus: [B200]}
  - {directory: two, name: two}
"""
TASK = """\
files:
  - {name: submission.py, source: "@SUBMISSION@"}
  - {name: eval.py, source: eval.py}
lang: py
description: Sum every row.
config: {main: eval.py}
tests: [{size: 1}]
benchmarks: [{size: 2}]
gpus: [H100]
"""

pytestmark = pytest.mark.django_db


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    for name in ("one", "two"):
        (root / "problems" / name).mkdir(parents=True)
        (root / "problems" / name / "task.yml").write_text(TASK)
        (root / "problems" / name / "eval.py").write_text("print('evaluator')\n")
    (root / "problems/demo.yaml").write_text(COMPETITION)
    return root


def edit(path: Path, old: str, new: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def sync(checkout: Path, *, force: bool = False) -> SyncResult:
    return sync_problems(checkout, actor=None, force=force)


def board(name: str = "one") -> Leaderboard:
    return Leaderboard.objects.select_related("current_revision").get(name=name)


def git(root: Path, *arguments: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(root), *who, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_first_sync_creates_the_leaderboards(checkout):
    result = sync(checkout)

    assert (result.created, result.updated, result.skipped, result.errors) == (
        ["one", "two"],
        [],
        [],
        [],
    )
    one = board("one")
    assert one.deadline == datetime(2030, 1, 31, tzinfo=UTC)
    assert (one.description, one.gpu_types) == ("Sum every row.", ["B200"])
    assert one.current_revision.definition.benchmarks == ({"size": 2},)
    two = board("two")
    assert two.gpu_types == ["H100"]
    assert timedelta(days=364) < two.deadline - timezone.now() <= timedelta(days=365)


def test_a_second_sync_changes_nothing_the_made_up_deadline_included(checkout):
    sync(checkout)
    before = board("two").deadline

    result = sync(checkout)

    assert result.skipped == [("one", "unchanged"), ("two", "unchanged")]
    assert (result.created, result.updated, result.errors) == ([], [], [])
    assert board("two").deadline == before
    assert board("two").revisions.count() == 1


def test_each_sync_leaves_its_audit_rows(checkout, olga):
    sync_problems(checkout, actor=olga)
    edit(checkout / "problems/demo.yaml", "[B200]", "[B200, H100]")
    sync_problems(checkout, actor=olga)

    rows = AuditEvent.objects.filter(subject_id=str(board("one").pk)).order_by("pk")
    assert [row.verb for row in rows] == [
        "leaderboard.created",
        "leaderboard.task_revised",
        "leaderboard.changed",
    ]
    assert {row.actor for row in rows} == {olga}
    assert rows[2].data == {
        "name": "one",
        "before": {"gpu_types": ["B200"]},
        "after": {"gpu_types": ["B200", "H100"]},
    }


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("demo.yaml", "2030-01-31", "2030-02-01 12:00", "deadline"),
        ("demo.yaml", "[B200]", "[H100, B200]", "gpu_types"),
        ("one/task.yml", "Sum every row.", "Sum all.", "description"),
        ("one/task.yml", "{size: 1}", "{size: 7}", "tests"),
        ("one/task.yml", "lang: py", "lang: py\ntest_timeout: 9", "test_timeout"),
    ],
)
def test_harmless_changes_are_applied_without_force(checkout, file, old, new, said):
    sync(checkout)
    edit(checkout / "problems" / file, old, new)

    assert sync(checkout).updated == [("one", said)]
    assert ("one", "unchanged") in sync(checkout).skipped


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("one/eval.py", "evaluator", "changed", "files"),
        ("one/task.yml", "{size: 2}", "{size: 3}", "benchmarks"),
        ("one/task.yml", "[{size: 2}]", "[{size: 2}, {size: 3}]", "benchmarks"),
    ],
)
def test_what_people_measured_against_changes_by_force_only(checkout, file, old, new, said):
    sync(checkout)
    first = board().current_revision
    edit(checkout / "problems" / file, old, new)
    edit(checkout / "problems/demo.yaml", "2030-01-31", "2031-01-31")

    held = sync(checkout)

    assert ("one", f"{said} changed: needs --force") in held.skipped
    assert board().current_revision == first
    assert board().deadline.year == 2030

    assert sync(checkout, force=True).updated == [("one", f"{said}, deadline")]
    assert board().current_revision != first
    assert board().revisions.count() == 2
    assert first in board().revisions.all()


def test_going_back_to_an_old_task_takes_its_old_revision(checkout):
    sync(checkout)
    first = board().current_revision
    edit(checkout / "problems/one/eval.py", "evaluator", "changed")
    sync(checkout, force=True)
    edit(checkout / "problems/one/eval.py", "changed", "evaluator")

    sync(checkout, force=True)

    assert board().current_revision == first
    assert board().revisions.count() == 2


def test_the_order_of_a_cases_keys_is_part_of_the_task(checkout):
    task = checkout / "problems/one/task.yml"
    edit(task, "{size: 2}", "{size: 2, seed: 1}")
    sync(checkout)
    edit(task, "{size: 2, seed: 1}", "{seed: 1, size: 2}")

    assert ("one", "benchmarks changed: needs --force") in sync(checkout).skipped


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("one/task.yml", "lang: py", "lang: hip", "problems/one/task.yml, line 4, lang: "),
        ("one/task.yml", "{size: 2}", "{size: 1.5}", "benchmarks[0].size"),
        ("one/task.yml", "source: eval.py", "source: gone.py", "there is no such file"),
        ("demo.yaml", "directory: one", "directory: gone", "gone/task.yml: there is no such file"),
        ("demo.yaml", "directory: one", "directory: ../..", "leads out of the checkout"),
        ("demo.yaml", "directory: one", "directory: /etc", "there is no such file"),
        ("demo.yaml", "2030-01-31", "soon", "a deadline is YYYY-MM-DD"),
        ("demo.yaml", "name: one", "name: One", "lower-case"),
        ("demo.yaml", "name: one", "name: admin", "leaderboard 'admin'"),
    ],
)
def test_one_broken_problem_is_reported_and_the_rest_is_synced(checkout, file, old, new, words):
    (checkout.parent / "task.yml").write_text(TASK)
    edit(checkout / "problems" / file, old, new)

    result = sync(checkout)

    assert result.created == ["two"]
    ((_, message),) = result.errors
    assert words in message
    assert [each.name for each in Leaderboard.objects.all()] == ["two"]


def test_a_broken_competition_does_not_stop_the_others(checkout):
    (checkout / "problems/broken.yaml").write_text("problems: [\n")
    (checkout / "problems/more.yml").write_text("problems:\n- {directory: two, name: one}\n")

    result = sync(checkout)

    assert result.created == ["one", "two"]
    assert [name for name, _ in result.errors] == ["broken", "one"]
    assert "not YAML" in result.errors[0][1]
    assert "more.yml names it again" in result.errors[1][1]


def test_a_new_leaderboard_without_gpus_is_skipped(checkout):
    edit(checkout / "problems/two/task.yml", "gpus: [H100]\n", "")

    assert sync(checkout).skipped == [("two", "neither competition nor task names GPUs")]


def test_one_problem_set_can_be_chosen_and_must_exist(checkout):
    (checkout / "problems/more.yaml").write_text("problems:\n- {directory: two, name: more}\n")

    assert sync_problems(checkout, actor=None, problem_set="more").created == ["more"]
    assert len(sync_problems(checkout, actor=None, problem_set="gone").errors) == 1


def test_the_commit_and_the_origin_without_its_token_are_recorded(checkout):
    git(checkout, "init", "-q")
    git(checkout, "add", ".")
    git(checkout, "commit", "-q", "-m", "problems")
    git(checkout, "remote", "add", "origin", "https://me:token@example.org/problems.git?key=1")

    sync(checkout)

    revision = board().current_revision
    assert revision.commit == git(checkout, "rev-parse", "HEAD")
    assert revision.repository == "https://example.org/problems.git"
    assert revision.directory == "problems/one"


def test_a_checkout_with_changes_of_its_own_is_marked(checkout):
    git(checkout, "init", "-q")
    git(checkout, "add", ".")
    git(checkout, "commit", "-q", "-m", "problems")
    edit(checkout / "problems/one/eval.py", "evaluator", "changed")

    sync(checkout)

    assert board().current_revision.commit == git(checkout, "rev-parse", "HEAD") + "-dirty"


def test_without_git_no_commit_is_claimed(checkout):
    sync(checkout)

    revision = board().current_revision
    assert (revision.commit, revision.repository) == ("", "")
    assert revision.directory == "problems/one"


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://user:pw@host:8443/a.git", "https://host:8443/a.git"),
        ("https://host/a.git?token=x#y", "https://host/a.git"),
        ("git@host:a/b.git", "git@host:a/b.git"),
        ("../beside", "../beside"),
        ("", ""),
    ],
)
def test_credentials_are_cut_from_an_address(url, kept):
    assert without_credentials(url) == kept


def test_the_command_prints_what_became_of_each(checkout, capsys):
    shutil.copytree(checkout / "problems/one", checkout / "problems/three")
    (checkout / "problems/bad.yaml").write_text("problems:\n- {directory: gone, name: bad}\n")

    with pytest.raises(CommandError) as caught:
        call_command("sync_problems", str(checkout))

    assert caught.value.returncode == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["created  one", "created  two"]
    assert lines[2].startswith("error    bad  problems/gone/task.yml: there is no such file")
    assert lines[3].startswith("commit: not known")


def test_the_examples_can_be_synced(capsys):
    call_command("sync_problems", str(EXAMPLES))

    assert "error" not in capsys.readouterr().out
    rowsum = board("rowsum_cpu")
    assert rowsum.gpu_types == ["CPU"]
    assert rowsum.current_revision.directory.endswith("problems/rowsum_cpu")
    assert "B200" in board("vectoradd").gpu_types


def test_the_command_says_that_a_directory_is_not_there(tmp_path):
    with pytest.raises(CommandError, match=r"there is no directory .*missing"):
        call_command("sync_problems", str(tmp_path / "missing"))
