"""Reads streams as wire-contract.md, 6.3 says that popcorn-cli does, its weaknesses included."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import httpx

SUBMISSION = b"def custom_kernel(data):\n    return data\n"
type Event = tuple[str, dict[str, Any]]
PATH = "/profile/rowsum/B200"


def form(
    content: bytes = SUBMISSION, name: str = "submission.py", **options: Any
) -> dict[str, Any]:
    """Keyword arguments for httpx; the file part has no Content-Type."""
    return {"files": {"file": (name, content, "")}, "data": options}


class Stream:
    """The events of a response as they come; every network chunk is decoded by itself, lossy."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.events: list[Event] = []
        self._frames = self._read()

    def _read(self) -> Iterator[Event]:
        buffer = ""
        for chunk in self.response.iter_raw():
            buffer += chunk.decode("utf-8", "replace")
            while (end := buffer.find("\n\n")) >= 0:
                frame, buffer = buffer[:end], buffer[end + 2 :]
                if event := parse(frame):
                    self.events.append(event)
                    yield event
        self.rest = buffer

    def next(self) -> Event:
        return next(self._frames)

    def until(self, wanted: Callable[[str, Any], bool]) -> Any:
        """The first event for which `wanted(name, data)` is true."""
        for name, data in self._frames:
            if wanted(name, data):
                return data
        raise AssertionError(f"the stream ended: {self.events}")

    def last(self) -> Event:
        """Read to the end of the stream; its last event, which must be the only one of its kind."""
        for _ in self._frames:
            pass
        terminal = [event for event in self.events if event[0] != "status"]
        assert self.rest == "", "content after the last separator is dropped by the client"
        assert terminal == self.events[-1:], "exactly one last event"
        return self.events[-1]

    @property
    def messages(self) -> list[str]:
        return [data["message"] for name, data in self.events if name == "status"]


def parse(frame: str) -> Event | None:
    """Of a frame, only the last event line and the last data line count."""
    event = data = None
    for line in frame.split("\n"):
        if line.startswith("event:"):
            event = line.removeprefix("event:").strip()
        elif line.startswith("data:"):
            data = line.removeprefix("data:").strip()
    return (event, json.loads(data)) if event and data else None


def archives(result: dict[str, Any]) -> dict[str, bytes]:
    """The bytes of each archive by its key; strict base64, as the client's decoder is."""
    runs = result["results"][0]["runs"]
    return {
        key: base64.b64decode(run["profile"]["trace"], validate=True)
        for key, run in runs.items()
        if run["profile"] and run["profile"]["trace"] is not None
    }


def names_in(archive: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return sorted(opened.namelist())
