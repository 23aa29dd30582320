"""Why problems could not be fetched; each is told with a status of its own, never as a success."""

from __future__ import annotations

from runners.exceptions import ServiceError


class RepositoryNotAllowed(ServiceError):
    """The settings do not name it."""

    code = "repository_not_allowed"
    http_status = 403


class BadBranch(ServiceError):
    code = "bad_branch"


class NoSuchBranch(ServiceError):
    code = "no_such_branch"
    http_status = 404


class FetchFailed(ServiceError):
    """The other side could not be reached, or does not do what it should."""

    code = "fetch_failed"
    http_status = 502


class BadArchive(FetchFailed):
    """What came is no archive that would be unpacked here."""

    code = "bad_archive"


class FetchTimedOut(ServiceError):
    code = "fetch_timed_out"
    http_status = 504


class SyncRunning(ServiceError):
    code = "sync_running"
    http_status = 409
