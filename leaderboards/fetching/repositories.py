"""Which repositories may be asked for, and how each is fetched.

`owner/name` is a repository on GitHub and comes as an archive, without git; anything else is an
address that git clones. Both the repository and the host that it leads to must be in the settings,
and no redirect is followed, so that no request can make this service talk to another machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from django.conf import settings

from leaderboards.fetching.exceptions import BadBranch, RepositoryNotAllowed

_GITHUB_NAME = re.compile(r"[A-Za-z0-9-]{1,39}/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
# What git allows in the name of a branch; a slash may stand inside of it.
_BRANCH = re.compile(r"(?![-/.@])(?!.*(?:\.\.|//|/\.|@\{))[^\s~^:?*\[\\]{1,200}(?<![/.])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """`address` is what is asked: of an archive, or of a git repository."""

    repository: str
    branch: str
    address: str
    is_archive: bool


def find_source(repository: str, branch: str) -> Source:
    """Raises RepositoryNotAllowed or BadBranch."""
    allowed = {name.casefold() for name in settings.PROBLEM_REPOSITORIES}
    if repository.casefold() not in allowed:
        raise RepositoryNotAllowed(
            f"{repository[:200]!r} is not among PROBLEM_REPOSITORIES, the settings' list of "
            "repositories that may be synced"
        )
    if not _BRANCH.fullmatch(branch) or not branch.isprintable():
        raise BadBranch(f"{branch[:200]!r} cannot be the name of a branch")
    is_archive = _GITHUB_NAME.fullmatch(repository) is not None
    address = repository
    if is_archive:
        address = f"{settings.GITHUB_ARCHIVES_URL}/{repository}/zip/refs/heads/{quote(branch)}"
    _require_allowed_host(address)
    return Source(repository=repository, branch=branch, address=address, is_archive=is_archive)


def _require_allowed_host(address: str) -> None:
    """Compares all between the slashes, so that no user, password or port slips in."""
    parts = urlsplit(address)
    if parts.scheme not in settings.PROBLEM_SCHEMES:
        raise RepositoryNotAllowed(
            f"problems are fetched by {', '.join(settings.PROBLEM_SCHEMES)} only (PROBLEM_SCHEMES)"
        )
    if parts.netloc.lower() not in settings.PROBLEM_HOSTS and parts.scheme != "file":
        raise RepositoryNotAllowed(
            "the repository's host is not among PROBLEM_HOSTS, the settings' list of hosts"
        )
