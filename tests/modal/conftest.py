"""The real client against the fake Modal, which is a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cbor2
import pytest
from google.protobuf import json_format
from modal_proto import api_pb2

from runners.backends.base import Finished, Pending
from runners.backends.modal_runner import ModalRunner
from runners.exceptions import RunnerFault
from runners.gpu import envelope
from runners.gpu.contract import JobConfig, JobOutcome, Mode, System
from runners.gpu.deployment import MODAL_GPUS, app_tags, function_name
from runners.registry import GpuType
from tests.fake_modal.server import FakeModal

DEPLOYMENT = "tests"
CONFIG = JobConfig(
    job_id="job-1",
    attempt=1,
    mode=Mode.TEST,
    lang="py",
    main="eval.py",
    sources={"eval.py": "print('evaluator')", "submission.py": "print('submission')"},
)


def make_tags(**changes: str) -> dict[str, str]:
    tags = app_tags(deployment=DEPLOYMENT, max_containers=4)
    return tags | {name.replace("_", "-"): value for name, value in changes.items()}


def deploy_function(fake: FakeModal, gpu: str = "B200", *, tags=None, **changes: Any) -> None:
    """A function as runners/modal_app.py deploys it, apart from `changes` of its definition."""
    fields: dict[str, Any] = {
        "function_name": function_name(gpu),
        "untrusted": True,
        "single_use_containers": True,
        "timeout_secs": 3120,
        "resources": api_pb2.Resources(
            gpu_config=api_pb2.GPUConfig(gpu_type=MODAL_GPUS[gpu], count=1)
        ),
        "supported_output_formats": [api_pb2.DATA_FORMAT_CBOR],
    }
    function = api_pb2.Function(**fields | changes)
    data = api_pb2.FunctionData(
        function_name=function.function_name,
        timeout_secs=function.timeout_secs,
        untrusted=function.untrusted,
        supported_output_formats=function.supported_output_formats,
        ranked_functions=[api_pb2.FunctionData.RankedFunction(rank=0, function=function)],
    )
    fake.deploy(
        app="kernelbot",
        name=function.function_name,
        tags=make_tags() if tags is None else tags,
        definition=json_format.MessageToDict(function),
        data=json_format.MessageToDict(data),
    )


def make_envelope(folder: Path, archive: bytes = b"") -> bytes:
    """A good envelope, with one part of these bytes if there are any."""
    outcome = JobOutcome(job_id="job-1", attempt=1, system=System(), runs={})
    (folder / "archive").write_bytes(archive)
    archives = {"profile.0.zip": folder / "archive"} if archive else {}
    envelope.write(folder / "envelope", outcome, archives)
    return (folder / "envelope").read_bytes()


def as_cbor(body: bytes) -> bytes:
    return cbor2.dumps(body)


@pytest.fixture(scope="session")
def fake_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeModal]:
    made = FakeModal(tmp_path_factory.mktemp("modal"))
    yield made
    made.close()


@pytest.fixture
def fake(fake_process: FakeModal, monkeypatch: pytest.MonkeyPatch) -> FakeModal:
    """A fake with the function of the B200, to which this process's client is pointed."""
    fake_process.be_as_new()
    for name, value in fake_process.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MODAL_MAX_THROTTLE_WAIT", "3")
    deploy_function(fake_process)
    return fake_process


@pytest.fixture
def wait() -> Iterator[Callable[[Coroutine], Any]]:
    """Run a coroutine to its end, on one event loop for the whole test."""
    with asyncio.Runner() as loop:
        yield loop.run


@dataclass
class Modal:
    """The runner under test and its provider, with the calls of a test in few words."""

    runner: ModalRunner
    fake: FakeModal
    wait: Callable[[Coroutine], Any]

    def start(self, gpu: str = "B200", config: JobConfig = CONFIG) -> str:
        return self.wait(self.runner.start(gpu, config))

    def poll(self, call_id: str):
        return self.wait(self.runner.poll(call_id))

    def fault_of_start(self, gpu: str = "B200") -> RunnerFault:
        with pytest.raises(RunnerFault) as caught:
            self.start(gpu)
        return caught.value

    def collect(self, call_id: str) -> Finished:
        """Poll until there is a result."""
        while isinstance(news := self.poll(call_id), Pending):
            assert news.phase, "it has not ended"
        return news

    def fault_of_poll(self, call_id: str) -> RunnerFault:
        with pytest.raises(RunnerFault) as caught:
            self.collect(call_id)
        return caught.value

    def spooled(self) -> list[Path]:
        return list(self.runner.spool_dir.iterdir())


@pytest.fixture
def modal_settings(settings, tmp_path):
    settings.MODAL_TOKEN_ID, settings.MODAL_TOKEN_SECRET = "ak-test", "as-test"
    settings.MODAL_DEPLOYMENT = DEPLOYMENT
    settings.DATA_DIR = tmp_path / "data"
    settings.GPU_TYPES = {
        name: GpuType(name=name, runner="modal", sm=sm, ncu=True, max_in_flight=4)
        for name, sm in (("B200", "100"), ("H100", "90a"), ("L4", "89"))
    }
    return settings


@pytest.fixture
def modal(fake: FakeModal, wait, modal_settings, monkeypatch) -> Iterator[Modal]:
    monkeypatch.setattr("runners.backends.modal_runner.POLL_WAIT_S", 0.2)
    runner = ModalRunner()
    yield Modal(runner, fake, wait)
    wait(runner.client.close())
