"""Whether this process can do its work. /health, which needs nothing, is in asgi_wrappers.py."""

from __future__ import annotations

import logging
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.files.storage import FileSystemStorage, storages
from django.db import Error as DatabaseError
from django.db.models import Max
from django.utils import timezone
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from runners.models import DispatcherHeartbeat
from runners.pauses import paused_gpus

log = logging.getLogger(__name__)
OK = "ok"
STORAGE_LIMIT_S = 3.0


@api_view(["GET"])
def ready(request: Request) -> Response:
    """200 when database and storage answer, else 503; `checks` says what is wrong with what.

    Without a dispatcher, and while GPUs are paused, requests are still accepted and wait: this is
    "degraded" and 200, for a proxy that took every web process away would only make it worse.
    """
    try:
        checks: dict[str, Any] = {
            "database": OK,
            "dispatcher": _judge_dispatcher(last_heartbeat()),
            "runners": _judge_runners(),
        }
    except DatabaseError:
        return _answer({"database": "the database does not answer"}, "the database does not answer")
    checks["storage"] = storage_probe.ask()
    return _answer(checks, "" if checks["storage"] == OK else checks["storage"])


def _answer(checks: dict[str, Any], stopped_by: str) -> Response:
    headers = {"Cache-Control": "no-store"}
    if stopped_by:
        body = {"detail": stopped_by, "code": "not_ready", "checks": checks}
        return Response(body, 503, headers=headers)
    fine = checks["dispatcher"] == OK and set(checks["runners"].values()) == {OK}
    return Response({"status": OK if fine else "degraded", "checks": checks}, headers=headers)


def last_heartbeat() -> datetime | None:
    """When any dispatcher was last alive; None when none is known.

    One of the future is of a dispatcher that ended before the clock was set back.
    """
    believed = timezone.now() + timedelta(seconds=settings.LEASE_S)
    beats = DispatcherHeartbeat.objects.filter(seen_at__lte=believed)
    seen: datetime | None = beats.aggregate(seen=Max("seen_at"))["seen"]
    return seen


def _judge_dispatcher(seen: datetime | None) -> str:
    if seen is None:
        return "no dispatcher runs"
    age = timezone.now() - seen
    if age > timedelta(seconds=settings.LEASE_S):
        return f"no dispatcher was alive in the last {age.total_seconds():.0f} seconds"
    return OK


def _judge_runners() -> dict[str, str]:
    """By GPU type; why one is paused is told to operators only."""
    paused = paused_gpus()
    return {name: "paused" if name in paused else OK for name in settings.GPU_TYPES}


class StorageProbe:
    """Asks the storage on a thread of its own, one question at a time.

    A storage that hangs must take neither a thread of the views nor one more with each question.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="storage-probe")
        self._lock = threading.Lock()
        self._asked: Future[str] | None = None

    def ask(self) -> str:
        with self._lock:
            if self._asked is None or self._asked.done():
                self._asked = self._thread.submit(_ask_storage)
            asked = self._asked
        try:
            return asked.result(STORAGE_LIMIT_S)
        except NotInTime:
            return f"the storage did not answer within {STORAGE_LIMIT_S:g} seconds"


def _ask_storage() -> str:
    storage = storages["reports"]
    try:
        if isinstance(storage, FileSystemStorage):
            return _judge_folder(str(storage.location))
        storage.exists("ready")
    except Exception:
        log.warning("the storage of reports does not answer", exc_info=True)
        return "the storage does not answer"
    return OK


def _judge_folder(path: str) -> str:
    """The folder is made with the first report: before that, its parent must be there."""
    place = path if os.path.exists(path) else os.path.dirname(path)
    return OK if os.access(place, os.R_OK | os.X_OK) else "the folder of reports cannot be read"


storage_probe = StorageProbe()
