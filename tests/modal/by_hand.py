"""The service with the fake Modal, where nothing runs: a test says how each call ends."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import cbor2
import httpx

from runners.backends.fake_plan import Plan, write_envelope
from runners.gpu.contract import JobConfig, read_config
from tests.fake_modal.server import TOKEN, FakeModal
from tests.modal.conftest import DEPLOYMENT, deploy_function
from tests.server.popcorn import form
from tests.server.service import Service, wait_for

PATH = "/profile/rowsum/B200"


class ByHand(Service):
    """Leaderboard rowsum on the B200, for whose function runs are started at the fake."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.modal = FakeModal(folder / "modal")
        deploy_function(self.modal)
        b200 = {"runner": "modal", "sm": "100", "ncu": True, "max_in_flight": 1000}
        defaults = {
            "GPU_TYPES": json.dumps({"B200": b200}),
            "MODAL_DEPLOYMENT": DEPLOYMENT,
            "RETRY_DELAY_S": "0.2",
        }
        super().__init__(folder, **defaults | settings)

    @property
    def _debug(self) -> dict[str, str]:
        return self.env | TOKEN | self.modal.environment()

    def submit(self) -> str:
        """The id of an accepted request for one benchmark, for which nobody waits."""
        with self.client() as client:
            answer = client.post(
                PATH, headers={"Prefer": "respond-async"}, **form(benchmark_index=0)
            )
        assert answer.status_code == 202, answer.text
        return answer.headers["Location"].rstrip("/").rpartition("/")[2]

    def next_call(self, known: set[str]) -> dict[str, Any]:
        """A call that is not among the known ones."""

        def find() -> dict[str, Any] | None:
            return next((c for c in self.modal.calls() if c["id"] not in known), None)

        return wait_for(find)

    def call_of_new_job(self) -> tuple[str, dict[str, Any]]:
        """A request, and the call that was made for it."""
        known = {call["id"] for call in self.modal.calls()}
        return self.submit(), self.next_call(known)

    def config_of(self, call: dict[str, Any]) -> JobConfig:
        """What was sent to the GPU side."""
        sent = call["input"]
        if "args" in sent:
            arguments = base64.b64decode(sent["args"])
        else:
            arguments = httpx.get(f"{self.modal.blob_url}/blob/{sent['argsBlobId']}").content
        (config,), _ = cbor2.loads(arguments)
        return read_config(config)

    def envelope_for(self, config: JobConfig, archive: Path) -> bytes:
        target = self.folder / f"{config.job_id}.envelope"
        write_envelope(target, config, Plan(archive=str(archive)))
        return target.read_bytes()

    def finish(self, call: dict[str, Any], archive: Path) -> float:
        """End a run well, with this archive; when it ended."""
        body = cbor2.dumps(self.envelope_for(self.config_of(call), archive))
        ended = time.time()
        self.modal.finish_with_blob(call["id"], body)
        return ended

    def close(self) -> None:
        self.stop_all()
        self.modal.close()
