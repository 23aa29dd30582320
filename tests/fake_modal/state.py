"""What the fake knows, kept in a folder, so that a fake that was killed can be started again.

calls/<fc id>.json     the function called, its input, when, its output
functions.json apps.json   what was deployed
blobs/<blob id>        contents; blobs/<blob id>.json says how it is served
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path

from google.protobuf import json_format
from modal_proto import api_pb2


@dataclass(kw_only=True)
class Call:
    """`input` and `output` are protobuf JSON of FunctionInput and FunctionGetOutputsItem."""

    id: str
    function_id: str
    enqueued_at: float
    input: dict
    idempotency_key: str = ""
    output: dict | None = None
    started_at: float | None = None
    ended_at: float | None = None
    expired: bool = False
    cancelled: bool = False
    terminated_containers: bool = False

    @property
    def input_id(self) -> str:
        return self.id.replace("fc-", "in-")

    def output_item(self) -> api_pb2.FunctionGetOutputsItem | None:
        if self.output is None:
            return None
        return json_format.ParseDict(self.output, api_pb2.FunctionGetOutputsItem())

    def status(self) -> int:
        """A FunctionCallInputStatus."""
        if item := self.output_item():
            name = api_pb2.GenericResult.GenericStatus.Name(item.result.status)
            return api_pb2.FunctionCallInputStatus.Value(
                name.replace("GENERIC_STATUS", "FUNCTION_CALL_INPUT_STATUS")
            )
        if self.started_at:
            return api_pb2.FUNCTION_CALL_INPUT_STATUS_RUNNING
        return api_pb2.FUNCTION_CALL_INPUT_STATUS_PENDING


@dataclass(kw_only=True)
class Deployed:
    """A function of an app. `data` is protobuf JSON of FunctionData, `definition` of Function."""

    id: str
    app: str
    name: str
    data: dict
    definition: dict

    def function(self) -> api_pb2.Function:
        return json_format.ParseDict(self.definition, api_pb2.Function())

    def function_data(self) -> api_pb2.FunctionData:
        return json_format.ParseDict(self.data, api_pb2.FunctionData())


@dataclass(kw_only=True)
class App:
    id: str
    name: str
    tags: dict[str, str] = field(default_factory=dict)


class State:
    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("calls", "blobs"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        self.calls = {c.id: c for c in (Call(**_load(p)) for p in (root / "calls").glob("*.json"))}
        self.functions = {d["id"]: Deployed(**d) for d in _load(root / "functions.json", [])}
        self.apps = {d["id"]: App(**d) for d in _load(root / "apps.json", [])}
        # Mount id to {name in the container: sha256 of the file in mounted/}.
        self.mounts: dict[str, dict[str, str]] = _load(root / "mounts.json", {})

    def forget(self) -> None:
        for known in (self.calls, self.functions, self.apps, self.mounts):
            known.clear()
        for path in (self.root / "calls").iterdir():
            path.unlink()
        self.save_deployed()

    def new_call(self, function_id: str, item: api_pb2.FunctionInput, key: str) -> Call:
        """A call; the same one again for a key that was seen."""
        for call in self.calls.values():
            if key and call.idempotency_key == key:
                return call
        call = Call(
            id=f"fc-{uuid.uuid4().hex}",
            function_id=function_id,
            enqueued_at=time.time(),
            input=json_format.MessageToDict(item),
            idempotency_key=key,
        )
        self.calls[call.id] = call
        self.save(call)
        return call

    def save(self, call: Call) -> None:
        _store(self.root / "calls" / f"{call.id}.json", asdict(call))

    def save_deployed(self) -> None:
        _store(self.root / "functions.json", [asdict(d) for d in self.functions.values()])
        _store(self.root / "apps.json", [asdict(a) for a in self.apps.values()])
        _store(self.root / "mounts.json", self.mounts)

    def find_function(self, app: str, name: str) -> Deployed | None:
        found = [d for d in self.functions.values() if (d.app, d.name) == (app, name)]
        return found[-1] if found else None

    def find_app(self, name: str) -> App | None:
        return next((app for app in self.apps.values() if app.name == name), None)

    def blob(self, blob_id: str) -> Path:
        return self.root / "blobs" / blob_id


def _load(path: Path, default: list | dict | None = None):
    if default is not None and not path.exists():
        return default
    return json.loads(path.read_text())


def _store(path: Path, value: object) -> None:
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(json.dumps(value))
    unfinished.replace(path)
