"""Frames of an event stream as popcorn-cli reads them (wire-contract.md, 6.3)."""

from __future__ import annotations

import json
from typing import Any


def frame(event: str, data: dict[str, Any]) -> bytes:
    """One line of ASCII JSON, LF LF: the client decodes chunk by chunk and splits on LF LF only."""
    return f"event: {event}\ndata: {json.dumps(data, allow_nan=False)}\n\n".encode("ascii")


def error_frame(detail: str, *, status_code: int, request_id: str, **more: Any) -> bytes:
    """The last event of a stream without a result."""
    data = {"status": "error", "detail": detail, "status_code": status_code}
    return frame("error", data | {"request_id": request_id} | more)
