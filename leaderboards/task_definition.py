"""A task as it is run: what task.yml says, with the contents of its files.

Every key of task.yml (wire-contract.md, 15.1) but `description`, `templates` and `gpus`, which
belong to the leaderboard. JSON text of it is what a TaskRevision keeps, and its SHA-256 names it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from runners.gpu import wire
from runners.gpu.contract import Spec

MAX_TASK_BYTES = 32 * 2**20
# Marks, in `files`, the place of the uploaded submission.
SUBMISSION_MARK = "@SUBMISSION@"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDefinition:
    """Times are seconds. `files` maps names to text, and one of them to SUBMISSION_MARK."""

    lang: str  # "py" or "cu"
    files: dict[str, str]
    main: str | None = None  # py
    sources: tuple[str, ...] = ()  # cu: names of files to compile
    include_dirs: tuple[str, ...] = ()
    defines: dict[str, str] = field(default_factory=dict)
    compile_flags: tuple[str, ...] = ()
    tests: tuple[Spec, ...] = ()
    benchmarks: tuple[Spec, ...] = ()
    test_timeout: float = 180.0  # a float, so that JSON read back is the same text
    benchmark_timeout: float = 180.0
    ranked_timeout: float = 180.0
    ranking_by: str = "last"  # "last", "mean" or "geom"
    multi_gpu: bool = False
    libraries: tuple[str, ...] = ()
    seed: int | None = None

    @property
    def submission_name(self) -> str:
        """The file name under which the evaluator finds the upload."""
        return next(name for name, text in self.files.items() if text == SUBMISSION_MARK)

    def to_json(self) -> str:
        """One line of ASCII JSON; equal definitions give equal text."""
        return wire.dumps(self).decode("ascii")

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.to_json().encode("ascii")).hexdigest()
