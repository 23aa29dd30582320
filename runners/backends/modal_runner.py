"""Runs jobs on Modal's GPUs: the Function of the GPU type is called, its result read raw.

Modal is the queue of the calls, our rows are the truth. Everything here may be called again after
a crash, from another process: a result stays readable at Modal for 7 days.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import modal
from django.conf import settings
from modal_proto import api_pb2

from runners.backends import modal_faults, modal_preflight, modal_results
from runners.backends.base import Finished, KnownRun, Pending
from runners.backends.modal_client import CALLS_TAIL, JobFunction, ModalClient, enqueued_at
from runners.exceptions import RunnerFault
from runners.gpu import wire
from runners.gpu.contract import JobConfig
from runners.gpu.deployment import MODAL_GPUS, function_name

logger = logging.getLogger(__name__)

# One long poll. Waiting runs cost a request each in this time, and a result is seen at once.
POLL_WAIT_S = 20.0
PREFLIGHT_EVERY_S = 60.0
DEPTH_EVERY_S = 10.0
# Whoever still wants a result after this fetches it again; Modal keeps it for 7 days.
SPOOL_KEPT_S = 24 * 3600.0

_UNFINISHED = (
    api_pb2.FUNCTION_CALL_INPUT_STATUS_UNSPECIFIED,
    api_pb2.FUNCTION_CALL_INPUT_STATUS_PENDING,
    api_pb2.FUNCTION_CALL_INPUT_STATUS_RUNNING,
)


class ModalRunner:
    name = "modal"

    def __init__(self) -> None:
        self.client = ModalClient(
            settings.MODAL_TOKEN_ID,
            settings.MODAL_TOKEN_SECRET,
            app=settings.MODAL_APP_NAME,
            environment=settings.MODAL_ENVIRONMENT,
        )
        self.spool_dir = Path(settings.DATA_DIR) / "modal-spool"
        self.spool_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._sweep()
        # GPU type to the function that passed the preflight, and until when that counts.
        self._safe: dict[str, tuple[JobFunction, float]] = {}
        self._fetching: dict[str, asyncio.Task[None]] = {}
        self._depths: dict[str, tuple[int | None, float]] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    async def start(self, gpu: str, config: JobConfig) -> str:
        with _told_as_faults():  # nothing is started up to here
            function = await self._safe_function(gpu)
        try:
            async with asyncio.timeout(settings.START_LIMIT_S):
                return await self.client.spawn(function, wire.dumps(config))
        except Exception as error:
            # Also what the client raises bare, as for an upload that failed: it is not known then.
            self._safe.pop(gpu, None)
            logger.warning("a start on %s failed: %r", gpu, error)
            raise modal_faults.start_fault_of(error) from error

    async def poll(self, external_id: str) -> Pending | Finished:
        spooled = self._spooled(external_id)
        if spooled.exists():
            return Finished(spooled)
        fetching = self._fetching.get(external_id)
        if fetching is None:
            with _told_as_faults(unknown=modal_faults.run_unknown):
                answer = await self.client.outputs(external_id, POLL_WAIT_S)
            if not answer.outputs:
                if answer.num_unfinished_inputs == 0:
                    raise modal_faults.result_expired()
                return Pending()
            result = modal_results.result_of(answer.outputs[0])
            fetching = asyncio.create_task(self._spool(result, spooled))
            self._fetching[external_id] = fetching
        # A large result takes longer than a poll may; the next one finds it further on.
        await asyncio.wait([fetching], timeout=POLL_WAIT_S)
        if not fetching.done():
            return Pending("fetching the result from the GPU provider")
        self._fetching.pop(external_id, None)
        with _told_as_faults(unknown=modal_faults.run_unknown):
            fetching.result()
        return Finished(spooled)

    async def cancel(self, external_id: str) -> None:
        if not _is_call_id(external_id):
            return
        with _told_as_faults(), contextlib.suppress(modal.exception.NotFoundError):
            await self.client.cancel(external_id)

    async def release(self, external_id: str) -> None:
        if fetching := self._fetching.pop(external_id, None):
            fetching.cancel()
            await asyncio.wait([fetching])
        if _is_call_id(external_id):
            self._spooled(external_id).unlink(missing_ok=True)

    async def unclaimed(self, since: datetime) -> list[KnownRun]:
        """Calls of this deployment's own app that have not ended."""
        self._sweep()
        found: list[KnownRun] = []
        for gpu in settings.GPU_TYPES.values():
            if gpu.runner == self.name:
                found += await self._calls_since(gpu.name, since)
        return found

    async def queue_depth(self, gpu: str) -> int | None:
        """What was known a moment ago; asking happens beside, so nobody waits for it."""
        depth, asked_at = self._depths.get(gpu, (None, 0.0))
        if time.monotonic() - asked_at > DEPTH_EVERY_S and gpu not in self._asking:
            task = asyncio.create_task(self._ask_depth(gpu))
            self._asking[gpu] = task
            task.add_done_callback(lambda _: self._asking.pop(gpu, None))
        return depth

    async def _safe_function(self, gpu: str) -> JobFunction:
        """The function of a GPU type, as it is deployed; raises RunnerFault for an unsafe one."""
        known = self._safe.get(gpu)
        if known and time.monotonic() < known[1]:
            return known[0]
        if gpu not in MODAL_GPUS:
            raise RunnerFault(
                f"There is no function for {gpu} at the GPU provider.",
                kind="modal_not_deployed",
                retryable=False,
            )
        async with asyncio.timeout(settings.START_LIMIT_S):
            function, info = await self.client.find_function(function_name(gpu))
            tags = await self.client.app_tags()
        modal_preflight.require_safe(gpu, info, tags)
        self._safe[gpu] = function, time.monotonic() + PREFLIGHT_EVERY_S
        return function

    async def _spool(self, result: api_pb2.GenericResult, target: Path) -> None:
        limit = settings.ENVELOPE_MAX_BYTES
        try:
            if result.WhichOneof("data_oneof") == "data_blob_id":
                url = await self.client.blob_url(result.data_blob_id)
                await modal_results.spool(modal_results.download(url, limit), target, limit)
            else:
                await modal_results.spool(modal_results.pieces_of(result.data), target, limit)
        except modal_results.NotAByteString as error:
            logger.error("the result of %s is none: %s", target.stem, error)  # noqa: TRY400
            raise modal_faults.bad_result() from error

    async def _calls_since(self, gpu: str, since: datetime) -> list[KnownRun]:
        with _told_as_faults():
            try:
                function, _ = await self.client.find_function(function_name(gpu))
            except modal.exception.NotFoundError:
                return []  # not deployed, so nothing of it runs
            calls = await self.client.calls(function)
        if len(calls) >= CALLS_TAIL and enqueued_at(calls[-1]) > since:
            raise RunnerFault(
                "The GPU provider has too many calls to tell which belong to nobody.",
                kind="modal_calls_uncounted",
                retryable=True,
            )
        return [
            KnownRun(call.function_call_id, enqueued_at(call))
            for call in calls
            if enqueued_at(call) > since and call.status in _UNFINISHED
        ]

    async def _ask_depth(self, gpu: str) -> None:
        depth = None
        try:
            with _told_as_faults():
                depth = await self.client.backlog(await self._safe_function(gpu))
        except RunnerFault as fault:
            logger.info("the queue depth of %s is unknown: %s", gpu, fault)
        self._depths[gpu] = depth, time.monotonic()

    def _sweep(self) -> None:
        """Remove what a killed dispatcher left, or one whose job another has taken home."""
        for path in self.spool_dir.iterdir():
            with contextlib.suppress(FileNotFoundError):  # another dispatcher was quicker
                if time.time() - path.stat().st_mtime > SPOOL_KEPT_S:
                    path.unlink()

    def _spooled(self, external_id: str) -> Path:
        if not _is_call_id(external_id):
            raise modal_faults.run_unknown()
        return self.spool_dir / f"{external_id}.envelope"


def _is_call_id(external_id: str) -> bool:
    """Else Modal never gave it, and it may be a path."""
    return external_id.startswith("fc-") and external_id[3:].isalnum()


@contextlib.contextmanager
def _told_as_faults(
    unknown: Callable[[], RunnerFault] | None = None,
) -> Iterator[None]:
    try:
        yield
    except modal_faults.EXPECTED as error:
        logger.warning("Modal: %r", error)
        if unknown and isinstance(error, modal.exception.NotFoundError):
            raise unknown() from error
        raise modal_faults.fault_of(error) from error
