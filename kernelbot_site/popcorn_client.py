"""Sends a profile request as popcorn-cli does, for the demo: same bytes, same reading of events."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx


class ProfileFailed(Exception):
    """The service answered with an error; the text is the service's own."""


@dataclass(frozen=True, slots=True)
class PopcornClient:
    address: str
    cli_id: str

    def profile(
        self, submission: Path, leaderboard: str, gpu: str, say: Callable[[str], None]
    ) -> tuple[str, dict[str, Any]]:
        """Upload, pass each status message to `say`; the request's id and the `result` event."""
        files = {"file": (submission.name, submission.read_bytes(), None)}
        url = f"{self.address}/profile/{leaderboard}/{gpu}"
        with (
            httpx.Client(headers=self._headers, timeout=3600, trust_env=False) as client,
            client.stream("POST", url, files=files) as response,
        ):
            if not response.is_success:
                response.read()
                raise ProfileFailed(response.json()["detail"])
            for event, data in read_events(response.iter_text()):
                if event == "status":
                    say(data.get("message", str(data)))
                elif event == "result":
                    return response.headers["X-Profile-Request"], data
                elif event == "error":
                    raise ProfileFailed(data["detail"])
        raise ProfileFailed("the stream ended without a result")

    def show(self, request_id: str) -> dict[str, Any]:
        """The stored facts of a request, as the API gives them."""
        answer = httpx.get(
            f"{self.address}/api/profile-requests/{request_id}/",
            headers=self._headers,
            timeout=30,
            trust_env=False,
        ).raise_for_status()
        facts: dict[str, Any] = answer.json()
        return facts

    @property
    def _headers(self) -> dict[str, str]:
        return {"X-Popcorn-Cli-Id": self.cli_id}


def read_events(chunks: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Frames end at LF LF; what has no event and data is a comment (wire-contract.md, 6.3)."""
    pending = ""
    for chunk in chunks:
        *frames, pending = (pending + chunk).split("\n\n")
        for frame in frames:
            fields = dict(line.partition(": ")[::2] for line in frame.split("\n"))
            if "event" in fields and "data" in fields:
                yield fields["event"], json.loads(fields["data"])


def extract_captures(result: dict[str, Any], folder: Path) -> dict[str, list[Path]]:
    """Write the files of every capture below `folder`, by run key; the CLI does the same."""
    written = {}
    for key, run in sorted(result["results"][0]["runs"].items()):
        trace = (run.get("profile") or {}).get("trace")
        if trace is None:
            continue
        target = folder / key
        target.mkdir(parents=True)
        with zipfile.ZipFile(io.BytesIO(base64.b64decode(trace, validate=True))) as archive:
            written[key] = [Path(archive.extract(name, target)) for name in archive.namelist()]
    return written
