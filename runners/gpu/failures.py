"""The one exception of the GPU side that carries words for the person who sent the submission."""

from __future__ import annotations

from runners.gpu.contract import Failure, FailureKind


class Failed(Exception):
    """A step that ended with a failure of a known kind."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.failure = Failure(kind=kind, message=message)
