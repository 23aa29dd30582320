"""Start the fake as a process of its own, and steer it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.fake_modal.containers import end_container

ROOT = Path(__file__).resolve().parents[2]
TOKEN = {"MODAL_TOKEN_ID": "ak-test", "MODAL_TOKEN_SECRET": "as-test"}


class FakeModal:
    """`container_path` makes it run each call in the real container runtime, with this PATH."""

    def __init__(self, state: Path, *, container_path: str | None = None) -> None:
        self.state_dir = state
        self.container_path = container_path
        self.ports = (0, 0)
        self.start()

    # --- The process ---

    def start(self) -> None:
        """Start, or start again after `kill` on the same ports with all that it knew."""
        argv = [sys.executable, "-m", "tests.fake_modal", "--state", str(self.state_dir)]
        argv += ["--port", str(self.ports[0]), "--blob-port", str(self.ports[1])]
        if self.container_path is not None:
            argv += ["--containers", "--container-path", self.container_path]
        self.process = subprocess.Popen(
            argv, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        line = self.process.stdout.readline()
        assert line, "the fake Modal did not start"
        self.server_url, self.blob_url = json.loads(line).values()
        self.ports = tuple(urlsplit(url).port for url in (self.server_url, self.blob_url))
        self.control = httpx.Client(base_url=self.blob_url + "/control", timeout=60)

    def kill(self) -> None:
        """As when a data centre goes away. Containers go on, as they do at Modal."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.control.close()

    def be_as_new(self) -> None:
        """Running, without faults, calls and functions, whatever the last test did to it."""
        if self.process.poll() is not None:
            self.start()
        self.thaw()
        self._post("/reset", {})

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        self.kill()
        for folder in (self.state_dir / "containers").glob("*"):
            end_container(folder)

    def environment(self) -> dict[str, str]:
        """What points the unmodified client here, with the token."""
        return TOKEN | {
            "MODAL_SERVER_URL": self.server_url,
            "MODAL_CONFIG_PATH": os.devnull,
            "MODAL_DISABLE_API_PROXY": "1",
        }

    # --- What it is told ---

    def fault(self, rpc: str, status: str = "", **more: Any) -> None:
        """The next call of `rpc` fails; see rpc.Fault."""
        self._post("/fault", {"rpc": rpc, "status": status} | more)

    def clear_faults(self) -> None:
        self._post("/faults/clear", {})

    def finish(self, call_id: str, data: bytes | None = None, **item: Any) -> None:
        """End a call: success with CBOR bytes, or whatever `item` says instead."""
        output: dict[str, Any] = {
            "result": {"status": "GENERIC_STATUS_SUCCESS"},
            "dataFormat": "DATA_FORMAT_CBOR",
        } | item
        if data is not None:
            output["result"] = output["result"] | {"data": base64.b64encode(data).decode()}
        self._post(f"/finish/{call_id}", output)

    def finish_with_blob(self, call_id: str, content: bytes = b"", **serving: Any) -> None:
        answer = self.control.post(
            "/blob", content=content, params={"serving": json.dumps(serving)}
        )
        result = {"status": "GENERIC_STATUS_SUCCESS", "dataBlobId": answer.json()["blob_id"]}
        self.finish(call_id, result=result)

    def change_call(self, call_id: str, **changes: Any) -> None:
        self._post(f"/call/{call_id}", changes)

    def deploy(self, **function: Any) -> None:
        """A function of any form: see control.Control.deploy."""
        self._post("/deploy", function)

    # --- What it saw ---

    def state(self) -> dict[str, Any]:
        return self.control.get("/state").json()

    def calls(self) -> list[dict[str, Any]]:
        return self.state()["calls"]

    def call(self, call_id: str) -> dict[str, Any]:
        return next(call for call in self.calls() if call["id"] == call_id)

    def requests(self, rpc: str) -> list[dict[str, Any]]:
        return [each["message"] for each in self.state()["requests"] if each["rpc"] == rpc]

    def wait_for(self, condition, seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not condition(self.state()):
            assert time.monotonic() < deadline, "the fake Modal never came to this state"
            time.sleep(0.05)

    def _post(self, path: str, body: dict[str, Any]) -> None:
        self.control.post(path, json=body).raise_for_status()
