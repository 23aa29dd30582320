"""Where the files of a local checkout come from, as its git records say it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

_GIT_LIMIT_S = 30
DIRTY_MARK = "-dirty"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """`commit` ends in DIRTY_MARK when files differ from it; all is empty outside of git."""

    repository: str = ""
    commit: str = ""
    top: Path | None = None

    def directory_of(self, path: Path, default_top: Path) -> str:
        """`path` as the repository calls it."""
        return path.resolve().relative_to((self.top or default_top).resolve()).as_posix()


def read_provenance(directory: Path) -> Provenance:
    """What git knows of `directory`; nothing where there is no git, or no commit."""
    commit = _git(directory, "rev-parse", "HEAD")
    top = _git(directory, "rev-parse", "--show-toplevel")
    if not commit or not top:
        return Provenance()
    dirty = _git(directory, "status", "--porcelain", "--", ".")
    origin = _git(directory, "config", "--get", "remote.origin.url")
    return Provenance(
        repository=without_credentials(origin)[:500],
        commit=commit if not dirty else commit[: 64 - len(DIRTY_MARK)] + DIRTY_MARK,
        top=Path(top),
    )


def without_credentials(url: str) -> str:
    """A repository's address without user, password and token; `host:path` stays as it is."""
    parts = urlsplit(url)
    if not parts.netloc:
        return url
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def _git(directory: Path, *arguments: str) -> str:
    """Its output, empty when it fails. Runs no hook and no monitor of the checkout."""
    git = shutil.which("git")
    if git is None:
        return ""
    tame = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]
    done = subprocess.run(
        [git, "-C", str(directory), *tame, *arguments],
        capture_output=True,
        check=False,
        timeout=_GIT_LIMIT_S,
    )
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else ""
