"""One person's HTTP as a patient client has it: what may be repeated is, until it is answered."""

from __future__ import annotations

import time
from typing import Any

import httpx

from tests.faults.ledger import Ledger
from tests.server.popcorn import Event, Stream

# Nothing is wrong for ever, docs/api.md says to come back.
AGAIN = frozenset({429, 502, 503, 504})
PAUSE_S = 0.5


class GaveUp(Exception):
    """No answer until the patience was spent."""


class Http:
    def __init__(self, client: httpx.Client, ledger: Ledger, deadline: float) -> None:
        self.client, self.ledger, self.deadline = client, ledger, deadline

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """The first answer that is no "come back later"; only for what is harmless to repeat."""
        while time.monotonic() < self.deadline:
            if (answer := self.try_once(method, path, **more)) is not None:
                return answer
            time.sleep(PAUSE_S)
        self.ledger.violate(f"{method} {path} was not answered when all had recovered")
        raise GaveUp

    def try_once(self, method: str, path: str, **more: Any) -> httpx.Response | None:
        try:
            answer = self.client.request(method, path, **more)
        except httpx.TransportError:
            self.ledger.answer(method, path, 0)
            return None
        self.seen(answer)
        return None if answer.status_code in AGAIN else answer

    def seen(self, answer: httpx.Response) -> None:
        method, path = answer.request.method, answer.request.url.path
        self.ledger.answer(method, path, answer.status_code)
        if answer.status_code == 500:
            answer.read()
            self.ledger.violate(f"500 to {method} {path}: {answer.text[:300]}")
        elif answer.status_code in AGAIN and "Retry-After" not in answer.headers:
            answer.read()
            self.ledger.violate(f"{answer.status_code} without Retry-After: {answer.text[:300]}")

    def read_to_the_end(self, response: httpx.Response, *, leave_early: bool) -> Event | None:
        """The last event of a stream; None when it broke off before one."""
        stream, last = Stream(response), None
        try:
            while True:
                event = stream.next()
                if last is not None:
                    self.ledger.violate(f"{event[0]} came after the last event of a stream")
                if event[0] != "status":
                    last = event
                elif leave_early:
                    return None
        except StopIteration:
            if last is None:
                self.ledger.note("stream ended without a last event", url=str(response.url))
        except httpx.TransportError as error:
            self.ledger.note("stream broke off", url=str(response.url), error=repr(error))
        return last
