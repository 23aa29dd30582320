"""Leaderboards that operators make for trying a problem, and the taking away of any."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Unpack

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from leaderboards import actions, audit
from leaderboards.audit import By
from leaderboards.checkouts import read_provenance
from leaderboards.deletion import delete_submission
from leaderboards.exceptions import BadLeaderboard, LeaderboardInUse
from leaderboards.located_yaml import TaskFileError
from leaderboards.models import Leaderboard
from leaderboards.problem_sync import DEFAULT_RUN
from leaderboards.standings import clear_standings
from leaderboards.task_files import TaskFile, read_task
from leaderboards.verbs import Verb
from runners.gpu.contract import Mode
from runners.states import ACTIVE

DEV_SUFFIX = "-dev"
# A folder below PROBLEMS_DIR; neither "..", nor a hidden one.
_DIRECTORY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*(/[A-Za-z0-9_][A-Za-z0-9_-]*)*")


def create_dev_leaderboard(
    directory: str, *, visibility: Leaderboard.Visibility, **by: Unpack[By]
) -> Leaderboard:
    """Make `<directory>-dev` of a problem below PROBLEMS_DIR, and hide the one that there was.

    All is read and checked before anything is touched. Raises BadLeaderboard.
    """
    place, task = _read_problem(directory)
    name = directory.replace("/", "-").lower() + DEV_SUFFIX
    provenance = read_provenance(place)
    with transaction.atomic():
        old = Leaderboard.objects.existing().select_for_update().filter(name=name).first()
        if old is not None:
            _hide(old, by)
        board = actions.create_leaderboard(
            name,
            deadline=timezone.now() + DEFAULT_RUN,
            gpu_types=task.gpus,
            description=task.description,
            visibility=visibility,
            **by,
        )
        actions.add_revision(
            board,
            task.definition,
            repository=provenance.repository,
            commit=provenance.commit,
            directory=provenance.directory_of(place, settings.PROBLEMS_DIR),
            **by,
        )
    return board


def _read_problem(directory: str) -> tuple[Path, TaskFile]:
    if not _DIRECTORY.fullmatch(directory):
        raise BadLeaderboard(
            f"{directory[:80]!r} is not the name of a problem's directory on this server"
        )
    place = settings.PROBLEMS_DIR / directory
    try:
        task = read_task(place / "task.yml", root=settings.PROBLEMS_DIR)
    except TaskFileError as error:
        raise BadLeaderboard(str(error)) from error
    if not task.gpus:
        raise BadLeaderboard(f"{directory}/task.yml names no GPUs")
    return place, task


@transaction.atomic
def delete_leaderboard(leaderboard: Leaderboard, *, force: bool, **by: Unpack[By]) -> None:
    """Hide a leaderboard with its submissions; what of them runs is cancelled.

    Raises LeaderboardInUse when there are any and `force` was not said.
    """
    count = leaderboard.submissions.filter(deleted_at=None).count()
    if count and not force:
        raise LeaderboardInUse(
            f"leaderboard {leaderboard.name!r} has submissions ({count}): "
            "delete it by force if they may go with it"
        )
    _hide(leaderboard, by)


def _hide(leaderboard: Leaderboard, by: By) -> None:
    now = timezone.now()
    standing = leaderboard.submissions.filter(deleted_at=None)
    count = standing.count()
    # One by one where something may run; the rest at once, as there may be a hundred thousand.
    running = Q(passes__job__status__in=ACTIVE) | Q(mode=Mode.PROFILE)
    for submission in standing.filter(running).distinct():
        delete_submission(submission, **by)
    standing.update(deleted_at=now)
    clear_standings(leaderboard)
    leaderboard.deleted_at = now
    leaderboard.save(update_fields=["deleted_at"])
    audit.record(
        Verb.LEADERBOARD_DELETED, leaderboard, **by, name=leaderboard.name, submissions=count
    )
