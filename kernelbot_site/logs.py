"""What a line of the log says: which request and which job, and no secret.

`LOG_FORMAT=json` writes one object a line; `line` is for a person at a terminal. Both hide what
they know to be secret, because a traceback may quote whatever a driver was given.
"""

from __future__ import annotations

import copy
import json
import logging
import re
from collections.abc import Iterable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

HIDDEN = "[hidden]"
# Whoever has such an address may read the request: profiling/links.py.
_SIGNED_LINK = re.compile(r"[0-9a-f]{32}\.[0-9]{1,12}\.[A-Za-z0-9_-]{43}")
_SHORTEST_SECRET = 8

# The request that this code works for; NameRequests sets it.
current_request_id: ContextVar[str] = ContextVar("current_request_id", default="")


class Line(logging.Formatter):
    """`secrets` never leave; what is shorter than 8 characters could be any word, and is kept."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        known = sorted({s for s in secrets if len(s) >= _SHORTEST_SECRET}, key=len, reverse=True)
        self._secrets = re.compile("|".join([*map(re.escape, known), _SIGNED_LINK.pattern]))

    def format(self, record: logging.LogRecord) -> str:
        return self.hide(super().format(record))

    def hide(self, text: str) -> str:
        return self._secrets.sub(HIDDEN, text)


class JsonLine(Line):
    """time, level, logger, message; request_id, job_id and error where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": current_request_id.get(),
            "job_id": find_job(record.args),
            "error": self.formatException(record.exc_info) if record.exc_info else "",
        }
        texts = {name: self.hide(text) for name, text in said.items() if text}
        return json.dumps(texts, ensure_ascii=True)


class RefusalsAreWarnings(logging.Filter):
    """One line for a request that Django refuses as suspicious (logger django.security.*).

    Django's own is an error with a traceback, with which any stranger could fill the log.
    """

    def filter(self, record: logging.LogRecord) -> logging.LogRecord:
        if not record.name.startswith("django.security."):
            return record
        short = copy.copy(record)
        short.exc_info = short.exc_text = None
        short.levelno, short.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
        return short


def find_job(args: Any) -> str:
    """The id of the job that a message is about. Models can't be imported yet when logging is."""
    for arg in args if isinstance(args, tuple) else ():
        meta = getattr(arg, "_meta", None)
        if getattr(meta, "label", "") == "runners.Job":
            return str(arg.pk)
    return ""
