"""Expected errors. `ServiceError` is the base of those of all apps that a client is told of."""

from __future__ import annotations


class ServiceError(Exception):
    """An error with words for the client: `str(error)` becomes `detail`.

    `code` is stable and for programs, `http_status` is what the API answers; `retry_after` is in
    whole seconds, and sent as the header too.
    """

    code = "error"
    http_status = 400

    def __init__(self, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class IllegalMove(Exception):
    """The table of states has no such move; a mistake of ours."""


class LostRace(Exception):
    """Somebody else moved the job first, or holds it now; what was read is out of date."""


class RunnerFault(Exception):
    """A runner could not do what it was asked for; never the submission's fault.

    `kind` is stable and for operators, the message is for people; `retryable` says whether another
    attempt may help.
    """

    def __init__(self, message: str, *, kind: str, retryable: bool) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable
