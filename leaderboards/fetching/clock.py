"""The time that one fetch may take, whatever its steps."""

from __future__ import annotations

import time
from dataclasses import dataclass

from leaderboards.fetching.exceptions import FetchTimedOut


@dataclass(frozen=True, slots=True)
class Clock:
    limit_s: float
    ends: float

    @classmethod
    def start(cls, limit_s: float) -> Clock:
        return cls(limit_s, time.monotonic() + limit_s)

    def left(self) -> float:
        """Seconds, more than none. Raises FetchTimedOut."""
        seconds = self.ends - time.monotonic()
        if seconds <= 0:
            raise self.over()
        return seconds

    def over(self) -> FetchTimedOut:
        return FetchTimedOut(f"the problems could not be fetched within {self.limit_s:g} seconds")
