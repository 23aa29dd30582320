"""The one place where a submission becomes runnable or is refused, whatever its mode.

The checks and their order are those of wire-contract.md, 13.1 and 13.2, with the status codes that
its section 20 puts right. Nothing is written here: whoever calls records what came of it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils import timezone

from leaderboards import access, exceptions
from leaderboards.directives import read_directives
from leaderboards.models import ClientId, Leaderboard, PopcornUser, TaskRevision
from leaderboards.models.tasks import name_form
from leaderboards.task_definition import TaskDefinition
from runners.gpu.contract import Mode
from runners.registry import GpuType, find_gpu

EXTENSIONS = (".py", ".cu", ".cuh", ".cpp")
FILE_NAME_MAX = 255
DEFAULT_FILE_NAME = "submission.py"
# First bytes of files that people send by mistake.
_FOREIGN_FILES = {
    b"\x89PNG": "a PNG image",
    b"\xff\xfe": "UTF-16 text: save it as UTF-8",
    b"\xfe\xff": "UTF-16 text: save it as UTF-8",
    b"PK\x03\x04": "a zip archive",
    b"\x1f\x8b": "a gzip archive",
    b"\x7fELF": "a compiled program",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A submission that may run. `text` is `content` decoded, and nothing else was changed."""

    leaderboard: Leaderboard
    revision: TaskRevision
    gpu: GpuType
    file_name: str
    content: bytes
    text: str
    selected: tuple[int, ...]  # zero-based indexes of the benchmarks that this mode runs


def prepare(
    *,
    user: PopcornUser,
    leaderboard_name: str,
    gpu_name: str,
    mode: Mode,
    file_name: str,
    content: bytes,
    benchmark_index: int | None = None,
    via: ClientId.Kind = ClientId.Kind.CLI,
    ignore_deadline: bool = False,
    now: datetime | None = None,
) -> Prepared:
    """Check everything that can be known before a GPU is asked.

    Names are taken in any case, and the GPU of the path wins over a directive's. `benchmark_index`
    is of profile mode, `via` the kind of id that the person came with; operators may submit after
    the deadline. Raises a SubmissionRefused that says what to do about it.
    """
    if mode == Mode.PROFILE:
        require_profilable(gpu_name)
    board = find_leaderboard(leaderboard_name)
    gpu = _offered_gpu(board, gpu_name)
    text = read_text(content)
    if user.banned_at is not None:
        reason = f": {user.ban_reason}" if user.ban_reason else ""
        raise exceptions.Banned(f"this account is banned from submitting{reason}")
    file_name = base_name(file_name)
    directed_to = read_directives(text).leaderboard
    if directed_to is not None and directed_to.lower() != board.name:
        raise exceptions.DirectiveConflict(
            f"the file's !POPCORN directive names leaderboard {directed_to[:64]!r}, "
            f"but it was sent to {board.name!r}"
        )
    access.require_submitter(board, user, via)
    if not ignore_deadline:
        _require_before_deadline(board, now or timezone.now())
    if board.current_revision is None:
        raise exceptions.NoTask(f"leaderboard {board.name!r} has no task yet")
    return Prepared(
        leaderboard=board,
        revision=board.current_revision,
        gpu=gpu,
        file_name=file_name,
        content=content,
        text=text,
        selected=select_benchmarks(board.current_revision.definition, mode, benchmark_index),
    )


def find_leaderboard(name: str) -> Leaderboard:
    """An existing leaderboard by its name in any case. Raises UnknownLeaderboard."""
    wanted = name.lower()
    try:
        name_form(wanted)  # before the database, which could not even take a NUL
        return Leaderboard.objects.existing().select_related("current_revision").get(name=wanted)
    except (ValidationError, Leaderboard.DoesNotExist) as error:
        raise exceptions.UnknownLeaderboard(f"there is no leaderboard {name[:64]!r}") from error


def read_mode(word: str) -> Mode:
    """A mode by its word in any case. Raises UnknownMode."""
    try:
        return Mode(word.lower())
    except ValueError as error:
        private = "private submissions are not offered here, " if word.lower() == "private" else ""
        raise exceptions.UnknownMode(
            f"{private}the mode must be one of: {_listed(list(Mode))}; got {word[:32]!r}"
        ) from error


def require_profilable(gpu_name: str) -> GpuType:
    """A configured GPU on which Nsight Compute is offered. Raises GpuNotProfilable."""
    gpu = find_gpu(settings.GPU_TYPES, gpu_name)
    if gpu is None:
        why = f"there is no GPU {gpu_name[:64]!r} here"
    elif gpu.device_count != 1:
        why = f"{gpu.name} has {gpu.device_count} devices, and profiling takes a single GPU"
    elif gpu.ncu:
        return gpu
    elif not gpu.sm:
        why = f"{gpu.name} is not an NVIDIA GPU, and Nsight Compute profiles no other"
    else:
        why = f"profiling is not offered on {gpu.name}"
    offered = [g.name for g in settings.GPU_TYPES.values() if g.ncu and g.device_count == 1]
    raise exceptions.GpuNotProfilable(f"{why}; profiling is offered on: {_listed(offered)}")


def _offered_gpu(board: Leaderboard, gpu_name: str) -> GpuType:
    served = [gpu for name in board.gpu_types if (gpu := find_gpu(settings.GPU_TYPES, name))]
    gpu = find_gpu(settings.GPU_TYPES, gpu_name)
    if gpu is None or gpu not in served:
        raise exceptions.GpuNotOffered(
            f"leaderboard {board.name!r} is not offered on {gpu_name[:64]!r}; "
            f"it is on: {_listed([gpu.name for gpu in served])}"
        )
    return gpu


def read_text(content: bytes) -> str:
    """The upload as text; a UTF-8 BOM and CRLF stay. Raises what is wrong with it."""
    limit = settings.SUBMISSION_MAX_BYTES
    if not content:
        raise exceptions.EmptyFile("the submitted file is empty")
    if len(content) > limit:
        raise exceptions.FileTooLarge(
            f"the submitted file has {len(content):,} bytes, at most {limit:,} are accepted"
        )
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        foreign = (what for start, what in _FOREIGN_FILES.items() if content.startswith(start))
        what = next(foreign, f"not UTF-8 text (byte {error.start} cannot be read)")
        raise exceptions.NotText(f"the submitted file is {what}") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise exceptions.NulBytes(
            f"the submitted file has a NUL byte in line {line}: send UTF-8 source text"
        )
    return text


def base_name(file_name: str) -> str:
    """The name without folders. Raises BadFileName or WrongExtension."""
    name = file_name.replace("\\", "/").rpartition("/")[2] or DEFAULT_FILE_NAME
    if len(name) > FILE_NAME_MAX:
        raise exceptions.BadFileName(f"the file name is longer than {FILE_NAME_MAX} characters")
    # Control characters, half surrogate pairs, line and paragraph separators.
    if any(unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} for char in name):
        raise exceptions.BadFileName("the file name contains control characters")
    if not name.endswith(EXTENSIONS):
        raise exceptions.WrongExtension(
            f"the file name must end in one of: {_listed(EXTENSIONS)}; got {name!r}"
        )
    return name


def _require_before_deadline(board: Leaderboard, now: datetime) -> None:
    if now > board.deadline:
        raise exceptions.DeadlinePassed(
            f"the deadline of leaderboard {board.name!r} passed on "
            f"{board.deadline:%Y-%m-%d %H:%M} UTC"
        )


def select_benchmarks(
    task: TaskDefinition, mode: Mode, benchmark_index: int | None = None
) -> tuple[int, ...]:
    """Which of the task's benchmarks a mode runs; profile mode's own refusals are made here.

    A profile takes the chosen one or all of them, whatever the ranking; a task that ranks by its
    last benchmark runs only that one otherwise (wire-contract.md, 5.6).
    """
    count = len(task.benchmarks)
    if mode == Mode.TEST:
        return ()
    if mode != Mode.PROFILE:
        return tuple(range(count))[-1:] if task.ranking_by == "last" else tuple(range(count))
    if task.multi_gpu:
        raise exceptions.MultiGpuTask("profiling is not offered for multi-GPU tasks")
    if not count:
        raise exceptions.NoBenchmarks("this task has no benchmarks, so there is nothing to profile")
    if benchmark_index is None:
        return tuple(range(count))
    if not 0 <= benchmark_index < count:
        valid = "only 0 is valid" if count == 1 else f"valid are 0 to {count - 1}"
        raise exceptions.BenchmarkIndexOutOfRange(
            f"benchmark_index {benchmark_index} is out of range: this task has {count} "
            f"benchmark{'s' if count > 1 else ''}, {valid}"
        )
    return (benchmark_index,)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
