"""Leaderboards as a checkout of a problem repository wants them (wire-contract.md, 15.2).

One bad file costs its own problem and no other. What people already measured against (files,
language, benchmarks) changes only by force; deadline, description, tests, limits and GPUs follow
the files.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Unpack

from django.db import transaction
from django.utils import timezone

from leaderboards import actions
from leaderboards.audit import By
from leaderboards.checkouts import Provenance, read_provenance
from leaderboards.exceptions import BadLeaderboard
from leaderboards.located_yaml import TaskFileError
from leaderboards.models import Leaderboard
from leaderboards.task_definition import TaskDefinition
from leaderboards.task_files import Problem, TaskFile, read_competition, read_task
from runners.gpu import wire

DEFAULT_RUN = timedelta(days=365)  # of a new leaderboard without a deadline
PROTECTED = (
    *("lang", "files", "main", "sources", "include_dirs", "defines", "compile_flags"),
    "benchmarks",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncResult:
    """Names, for those that did not simply come into being with what there is to say."""

    provenance: Provenance
    created: list[str] = field(default_factory=list)
    updated: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    errors: list[tuple[str, str]] = field(default_factory=list)


def sync_problems(
    directory: Path,
    *,
    force: bool = False,
    problem_set: str | None = None,
    visibility: Leaderboard.Visibility = Leaderboard.Visibility.PUBLIC,
    provenance: Provenance | None = None,
    **by: Unpack[By],
) -> SyncResult:
    """Read the competition files of a checkout and make its leaderboards so.

    They are in `directory`/problems or in `directory` itself; `problem_set` chooses one by its
    file name without extension. Nothing outside `directory` is read. `visibility` is of the
    leaderboards that come into being; git is asked for a `provenance` that nobody knows.
    """
    result = SyncResult(provenance=provenance or read_provenance(directory))
    problems = directory / "problems" if (directory / "problems").is_dir() else directory
    files = [
        path
        for path in sorted([*problems.glob("*.yaml"), *problems.glob("*.yml")])
        if problem_set in (None, path.stem)
    ]
    if not files:
        what = f"competition file {problem_set!r}" if problem_set else "competition file"
        result.errors.append((problem_set or "problems", f"there is no {what} (*.yaml) here"))
    seen: set[str] = set()
    for path in files:
        try:
            competition = read_competition(path, root=directory)
        except TaskFileError as error:
            result.errors.append((path.stem, str(error)))
            continue
        result.errors.extend((name, str(error)) for name, error in competition.errors)
        for problem in competition.problems:
            if problem.name in seen:
                result.errors.append((problem.name, f"{path.name} names it again"))
                continue
            seen.add(problem.name)
            # Joined as text: a directory that begins with a slash must not become another root.
            place = Path(f"{problems}/{problem.directory}")
            sync = _ProblemSync(directory, place, force, visibility, result, by)
            try:
                sync.run(problem)
            except (TaskFileError, BadLeaderboard) as error:
                result.errors.append((problem.name, str(error)))
    return result


@dataclass(frozen=True, slots=True)
class _ProblemSync:
    root: Path
    directory: Path
    force: bool
    visibility: Leaderboard.Visibility
    result: SyncResult
    by: By

    @transaction.atomic
    def run(self, problem: Problem) -> None:
        task = read_task(self.directory / "task.yml", root=self.root)
        board = (
            Leaderboard.objects.existing()
            .select_for_update(of=("self",))
            .select_related("current_revision")
            .filter(name=problem.name)
            .first()
        )
        gpus = problem.gpus or task.gpus
        if board is not None:
            self._update(board, problem, task, gpus)
        elif not gpus:
            self.result.skipped.append((problem.name, "neither competition nor task names GPUs"))
        else:
            self._create(problem, task, gpus)

    def _create(self, problem: Problem, task: TaskFile, gpus: tuple[str, ...]) -> None:
        board = actions.create_leaderboard(
            problem.name,
            deadline=problem.deadline or timezone.now() + DEFAULT_RUN,
            gpu_types=gpus,
            description=task.description,
            visibility=self.visibility,
            **self.by,
        )
        self._add_revision(board, task.definition)
        self.result.created.append(problem.name)

    def _update(
        self, board: Leaderboard, problem: Problem, task: TaskFile, gpus: tuple[str, ...]
    ) -> None:
        old = board.current_revision.definition if board.current_revision else None
        differing = _differences(old, task.definition)
        if old and not self.force and (held := [name for name in differing if name in PROTECTED]):
            reason = f"{', '.join(held)} changed: needs --force"
            self.result.skipped.append((problem.name, reason))
            return
        wanted = {"description": task.description, "gpu_types": list(gpus) or board.gpu_types}
        # Without a deadline in the files, the one that the leaderboard has stays.
        wanted["deadline"] = problem.deadline or board.deadline
        changes = {k: v for k, v in wanted.items() if getattr(board, k) != v}
        if changes:
            actions.change_leaderboard(board, changes=changes, **self.by)
        if differing:
            self._add_revision(board, task.definition)
        if changes or differing:
            self.result.updated.append((problem.name, ", ".join([*differing, *changes])))
        else:
            self.result.skipped.append((problem.name, "unchanged"))

    def _add_revision(self, board: Leaderboard, definition: TaskDefinition) -> None:
        provenance = self.result.provenance
        actions.add_revision(
            board,
            definition,
            repository=provenance.repository,
            commit=provenance.commit,
            directory=provenance.directory_of(self.directory, self.root),
            **self.by,
        )


def _differences(old: TaskDefinition | None, new: TaskDefinition) -> list[str]:
    """Names of fields that differ, the order of keys included: case lines follow it."""

    def texts(task: TaskDefinition | None) -> dict[str, Any]:
        encoded: dict[str, Any] = wire.encode(task) if task else {}
        return {name: json.dumps(value) for name, value in encoded.items()}

    before, after = texts(old), texts(new)
    return [name for name, text in after.items() if before.get(name) != text]
