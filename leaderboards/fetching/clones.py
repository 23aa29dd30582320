"""A branch of a git repository, cloned without asking, running or keeping anything of it."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from django.conf import settings

from leaderboards.fetching.clock import Clock
from leaderboards.fetching.exceptions import BadArchive, FetchFailed, FetchTimedOut, NoSuchBranch
from leaderboards.fetching.repositories import Source

log = logging.getLogger(__name__)

# Of any one file that git writes: what it receives is one.
FILE_BYTES = 64 * 2**20
CHECKOUT_BYTES = 256 * 2**20
CHECKOUT_FILES = 20_000
LISTING_BYTES = 8 * 2**20
# `ulimit` counts in these.
_BLOCK = 512
_LIMITED = ["/bin/sh", "-c", 'ulimit -f "$1"; shift; exec "$@"', "sh", str(FILE_BYTES // _BLOCK)]
_TAME = [
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "http.followRedirects=false"),
]


def clone_branch(source: Source, into: Path, clock: Clock) -> str:
    """Check the branch out at `into`, and give its commit.

    What it holds is counted before it is written. Raises NoSuchBranch, FetchFailed, BadArchive or
    FetchTimedOut.
    """
    shallow = ["--depth=1", "--single-branch", "--no-tags", "--no-checkout", "--quiet"]
    branch = f"--branch={source.branch}"
    try:
        _git(into.parent, clock, "clone", *shallow, branch, "--", source.address, str(into))
        listing = _git(into, clock, "ls-tree", "-r", "-l", "-z", "HEAD")
        _require_small(listing)
        _git(into, clock, "checkout", "--quiet", "HEAD", "--", ".")
        return _git(into, clock, "rev-parse", "HEAD").decode().strip()
    except _GitFailed as error:
        told = error.stderr.decode(errors="replace")
        log.warning("fetching %s failed: %s", source.repository, told[:2000])
        if "Remote branch" in told:
            raise NoSuchBranch(f"{source.repository} has no branch {source.branch!r}") from error
        raise FetchFailed(
            f"{source.repository} cannot be cloned: it is not there, not public, or too large"
        ) from error


def _require_small(listing: bytes) -> None:
    """Raises BadArchive. A line is `mode type object size<TAB>path`; submodules have no size."""
    sizes = [line.split(b"\t")[0].split()[3] for line in listing.split(b"\0") if line]
    size = sum(int(text) for text in sizes if text.isdigit())
    if len(sizes) > CHECKOUT_FILES or size > CHECKOUT_BYTES:
        raise BadArchive(
            f"the repository has {len(sizes):,} files with {size:,} bytes, which is too much"
        )


class _GitFailed(Exception):
    def __init__(self, stderr: bytes) -> None:
        super().__init__()
        self.stderr = stderr


def _git(folder: Path, clock: Clock, *arguments: str) -> bytes:
    """Its output. Raises _GitFailed, FetchFailed, BadArchive or FetchTimedOut."""
    git = shutil.which("git")
    if git is None:
        raise FetchFailed("this server has no git: only repositories on GitHub can be synced")
    # Into files, which the limit holds for as well: a listing can be endless.
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        subprocess.Popen(
            [*_LIMITED, git, *_TAME, *arguments],
            cwd=folder,
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        ) as child,
    ):
        try:
            child.wait(clock.left())
        except (subprocess.TimeoutExpired, FetchTimedOut) as error:
            os.killpg(child.pid, signal.SIGKILL)  # its helpers too
            raise clock.over() from error
        out.seek(0)
        err.seek(0)
        if child.returncode != 0:
            raise _GitFailed(err.read(LISTING_BYTES))
        output = out.read(LISTING_BYTES + 1)
    if len(output) > LISTING_BYTES:
        raise BadArchive("the repository has too many files")
    return output


def _environment(folder: Path) -> dict[str, str]:
    """No settings of whoever runs the service, no questions, and only the schemes allowed here."""
    kept = ("PATH", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE")
    return {name: os.environ[name] for name in kept if name in os.environ} | {
        "HOME": str(folder),
        "LC_ALL": "C",
        "GIT_ALLOW_PROTOCOL": ":".join(settings.PROBLEM_SCHEMES),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
    }
