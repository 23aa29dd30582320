"""Leaderboards as a branch of a repository wants them: fetched into a folder that then goes."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from django.conf import settings

from leaderboards.audit import By
from leaderboards.checkouts import Provenance
from leaderboards.fetching.archives import download_archive, unpack_archive
from leaderboards.fetching.clock import Clock
from leaderboards.fetching.clones import clone_branch
from leaderboards.fetching.repositories import Source, find_source
from leaderboards.models import Leaderboard
from leaderboards.problem_sync import SyncResult, sync_problems
from runners.scratch import scratch_folder


def sync_repository(
    repository: str,
    *,
    branch: str,
    force: bool = False,
    problem_set: str | None = None,
    visibility: Leaderboard.Visibility = Leaderboard.Visibility.PUBLIC,
    **by: Unpack[By],
) -> SyncResult:
    """Fetch a branch within PROBLEM_FETCH_LIMIT_S and sync it; the commit is recorded.

    Raises the errors of fetching before anything is changed: fetching/exceptions.py.
    """
    source = find_source(repository, branch)
    with scratch_folder("problems") as folder:
        root, commit = _fetch(source, Path(folder))
        return sync_problems(
            root,
            force=force,
            problem_set=problem_set,
            visibility=visibility,
            provenance=Provenance(repository=_called(source), commit=commit, top=root),
            **by,
        )


def _fetch(source: Source, folder: Path) -> tuple[Path, str]:
    clock = Clock.start(settings.PROBLEM_FETCH_LIMIT_S)
    if not source.is_archive:
        return folder / "clone", clone_branch(source, folder / "clone", clock)
    download_archive(source, folder / "archive.zip", clock)
    return unpack_archive(folder / "archive.zip", folder / "unpacked", clock)


def _called(source: Source) -> str:
    """As an address, whichever way it was fetched."""
    return f"{settings.GITHUB_URL}/{source.repository}" if source.is_archive else source.repository
