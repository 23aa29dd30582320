"""Runs each call in Modal's own container runtime, from nothing but the files that were mounted."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from pathlib import Path

from modal_proto import api_pb2

from tests.fake_modal.control_plane import ControlPlane
from tests.fake_modal.state import Call

HOME = "/root/"


class Containers:
    """One process group per call, as single-use containers are; no GPU, no isolation."""

    def __init__(self, plane: ControlPlane, server_url: str, path: str) -> None:
        self.plane, self.server_url, self.path = plane, server_url, path
        self.tasks: set[asyncio.Task] = set()
        plane.on_call = self.start
        plane.on_cancel = self.stop

    def start(self, call: Call) -> None:
        """Unless its container goes on from before this fake was started again."""
        pid = pid_of(self._folder(call))
        task = asyncio.create_task(self._run(call) if pid is None else self._watch(call))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def stop(self, call: Call) -> None:
        end_container(self._folder(call))

    def _folder(self, call: Call) -> Path:
        return self.plane.state.root / "containers" / call.id

    async def _run(self, call: Call) -> None:
        folder = self._folder(call)
        root = self._unpack(folder, self.plane.state.functions[call.function_id].function())
        arguments = folder / "arguments"
        arguments.write_bytes(self._arguments(call).SerializeToString())
        with (folder / "log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "modal._container_entrypoint",
                cwd=root,
                env={
                    "PATH": self.path,
                    "HOME": str(root),
                    "TMPDIR": str(folder),
                    "PYTHONPATH": str(root),
                    "MODAL_IS_REMOTE": "1",
                    "MODAL_CONTAINER_ARGUMENTS_PATH": str(arguments),
                    "MODAL_SERVER_URL": self.server_url,
                    "MODAL_TASK_ID": call.id.replace("fc-", "ta-"),
                    "MODAL_OVERRIDE_HEADERS": f"x-modal-task-id:{call.id.replace('fc-', 'ta-')}",
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            (folder / "pid").write_text(str(process.pid))
            await process.wait()
        self._lose(call)

    async def _watch(self, call: Call) -> None:
        while pid_of(self._folder(call)) is not None:  # noqa: ASYNC110  no child of ours
            await asyncio.sleep(0.5)
        self._lose(call)

    def _lose(self, call: Call) -> None:
        """A container that ended without a word."""
        if call.output is None:
            self.plane.finish(call, {"result": {"status": "GENERIC_STATUS_INTERNAL_FAILURE"}})

    def _unpack(self, folder: Path, function: api_pb2.Function) -> Path:
        """The home of the container: exactly the files that the deploy mounted."""
        root = folder / "root"
        for mount_id in function.mount_ids:
            for name, sha256_hex in self.plane.state.mounts[mount_id].items():
                target = root / name.removeprefix(HOME)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.plane.state.root / "mounted" / sha256_hex, target)
        return root

    def _arguments(self, call: Call) -> api_pb2.ContainerArguments:
        deployed = self.plane.state.functions[call.function_id]
        function = deployed.function()
        app = self.plane.state.find_app(deployed.app)
        objects = [
            api_pb2.Object(
                object_id=deployed.id,
                function_handle_metadata=self.plane.handle_metadata(deployed),
            )
        ]
        objects += [
            api_pb2.Object(object_id=dependency.object_id)
            for dependency in function.object_dependencies
        ]
        return api_pb2.ContainerArguments(
            task_id=call.id.replace("fc-", "ta-"),
            function_id=deployed.id,
            app_id=app.id,
            function_def=function,
            environment_name="main",
            app_layout=api_pb2.AppLayout(
                objects=objects, function_ids={deployed.name: deployed.id}
            ),
        )


def pid_of(folder: Path) -> int | None:
    """The container's process, if it lives."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((folder / "pid").read_text())
        # Not one that ended and that nobody waits for, as its parent was killed.
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            return pid
    return None


def end_container(folder: Path) -> None:
    """Kill the container and what it started, whatever session that made for itself."""
    pid = pid_of(folder)
    if pid is None:
        return
    for each in [*_descendants(pid), pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def _descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            for child in (task / "children").read_text().split():
                found += [*_descendants(int(child)), int(child)]
    return found
