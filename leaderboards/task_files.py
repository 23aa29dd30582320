"""task.yml and competition files, read into what the service keeps (wire-contract.md, 15).

Whatever cannot be used raises TaskFileError with file, line and key; nothing is guessed, so that
a value means to an evaluator what it meant in the file (FR-40).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from leaderboards.located_yaml import Located, TaskFileError, read_file, read_yaml
from leaderboards.task_definition import MAX_TASK_BYTES, SUBMISSION_MARK, TaskDefinition
from runners.gpu.contract import Spec

MAX_FILE_BYTES = 4 * 2**20
LANGUAGES = ("CUDA", "Python", "Triton", "HIP", "CuteDSL")
TASK_KEYS = (
    *("files", "lang", "description", "config", "tests", "benchmarks", "test_timeout"),
    *("benchmark_timeout", "ranked_timeout", "ranking_by", "multi_gpu", "libraries", "seed"),
    *("templates", "gpus", "validation"),
)
_FILE_NAME = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.+ -]*(/[A-Za-z0-9_.][A-Za-z0-9_.+ -]*)*")
# What a case line can carry, and an evaluator can tell from a number and from what separates.
_SPEC_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPEC_TEXT = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_GPU_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFile:
    """What a task.yml says: the task itself, and what belongs to its leaderboard."""

    definition: TaskDefinition
    description: str
    gpus: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One entry of a competition. No `deadline`: neither it nor the competition names one."""

    name: str
    directory: str
    deadline: datetime | None
    gpus: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Competition:
    """`errors` names the entries that cannot be used, beside the good ones."""

    name: str
    problems: tuple[Problem, ...]
    errors: tuple[tuple[str, TaskFileError], ...]


def read_competition(path: Path, *, root: Path) -> Competition:
    """Read one competition file; an entry without a deadline has the competition's own.

    Raises TaskFileError when the file as a whole cannot be used.
    """
    fields = read_yaml(path, root=root).fields(required=["problems"])
    name = fields["name"].text() if "name" in fields else path.stem
    common = _deadline(fields.get("deadline"))
    problems, errors = [], []
    for entry in fields["problems"].items():
        called = entry.key
        try:
            if named := entry.fields().get("name"):
                called = named.text()
            values = entry.fields(required=["name", "directory"])
            problems.append(
                Problem(
                    name=called,
                    directory=values["directory"].text(),
                    deadline=_deadline(values.get("deadline")) or common,
                    gpus=_gpus(values.get("gpus")),
                )
            )
        except TaskFileError as error:
            errors.append((called, error))
    return Competition(name=name, problems=tuple(problems), errors=tuple(errors))


def _deadline(value: Located | None) -> datetime | None:
    """`YYYY-MM-DD HH:MM` or `YYYY-MM-DD` (its first minute), in UTC; empty means none."""
    text = value.date_text().strip() if value else ""
    if value is None or not text:
        return None
    for form in ("%Y-%m-%d %H:%M", "%Y-%m-%d"):
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise value.error(f"a deadline is YYYY-MM-DD or YYYY-MM-DD HH:MM in UTC, not {text[:80]!r}")


def read_task(path: Path, *, root: Path) -> TaskFile:
    """Read a task.yml with the files that it names, none of them outside `root`."""
    whole = read_yaml(path, root=root)
    fields = whole.fields(known=TASK_KEYS, required=["files", "lang", "description", "config"])
    _check_templates(fields, path, root)
    if "validation" in fields:
        fields["validation"].fields(known=["version", "script"])
    definition = _read_definition(fields, _read_files(fields["files"], path, root))
    if len(definition.to_json()) > MAX_TASK_BYTES:
        raise whole.error(f"the task's files have more than {MAX_TASK_BYTES:,} bytes together")
    return TaskFile(
        definition=definition,
        description=fields["description"].text(),
        gpus=_gpus(fields.get("gpus")),
    )


def _read_definition(fields: dict[str, Located], files: dict[str, str]) -> TaskDefinition:
    lang = fields["lang"].choice(["py", "cu"])
    names = ("test_timeout", "benchmark_timeout", "ranked_timeout")
    limits: dict[str, Any] = {name: fields[name].seconds() for name in names if name in fields}
    multi_gpu = "multi_gpu" in fields and fields["multi_gpu"].boolean()
    seed = fields.get("seed")
    ranking = fields.get("ranking_by")
    read_config = _read_python_config if lang == "py" else _read_cuda_config
    return TaskDefinition(
        lang=lang,
        files=files,
        tests=_read_specs(fields.get("tests"), multi_gpu=multi_gpu),
        benchmarks=_read_specs(fields.get("benchmarks"), multi_gpu=multi_gpu),
        multi_gpu=multi_gpu,
        libraries=_texts(fields.get("libraries")),
        seed=None if seed is None or seed.is_null else seed.integer(),
        ranking_by=ranking.choice(["last", "mean", "geom"]) if ranking else "last",
        **limits,
        **read_config(fields["config"], files),
    )


def _read_python_config(config: Located, files: dict[str, str]) -> dict[str, Any]:
    main = config.fields(known=["main"], required=["main"])["main"]
    return {"main": _one_of_the_files(main, files)}


def _read_cuda_config(config: Located, files: dict[str, str]) -> dict[str, Any]:
    fields = config.fields(
        known=["sources", "include_dirs", "defines", "compile_flags"], required=["sources"]
    )
    sources = tuple(_one_of_the_files(item, files) for item in fields["sources"].items())
    if not sources:
        raise fields["sources"].error("at least one file must be compiled")
    defines = fields["defines"].fields() if "defines" in fields else {}
    return {
        "sources": sources,
        "include_dirs": _texts(fields.get("include_dirs")),
        "defines": {name: str(_spec_scalar(value)) for name, value in defines.items()},
        "compile_flags": _texts(fields.get("compile_flags")),
    }


def _one_of_the_files(value: Located, files: dict[str, str]) -> str:
    name = value.text()
    if name not in files:
        raise value.error(f"{name[:80]!r} is not among the task's files")
    return name


def _read_files(value: Located, path: Path, root: Path) -> dict[str, str]:
    files: dict[str, str] = {}
    for item in value.items():
        fields = item.fields(known=["name", "source"], required=["name", "source"])
        name = _file_name(fields["name"])
        if name in files:
            raise fields["name"].error(f"the file {name!r} is there twice")
        source = fields["source"]
        is_mark = source.text() == SUBMISSION_MARK
        files[name] = SUBMISSION_MARK if is_mark else _read_source(source, path, root)
    marks = sum(text == SUBMISSION_MARK for text in files.values())
    if marks != 1:
        raise value.error(f"exactly one file must be {SUBMISSION_MARK}, not {marks}")
    return files


def _file_name(value: Located) -> str:
    name = value.text()
    if not _FILE_NAME.fullmatch(name) or {".", ".."} & set(PurePosixPath(name).parts):
        raise value.error(f"{name[:80]!r} is not a plain relative file name")
    if len(name) > 200:
        raise value.error("the file name is longer than 200 characters")
    return name


def _read_source(value: Located, task: Path, root: Path) -> str:
    """The text of a file beside the task.yml, or elsewhere in the checkout: `../` is allowed."""
    written = value.text()
    source = (task.parent / written).resolve()
    if not source.is_relative_to(root.resolve()):
        raise value.error(f"{written[:80]!r} leads out of the checkout")
    if ".git" in source.relative_to(root.resolve()).parts:
        raise value.error(f"{written[:80]!r} belongs to git, not to the task")
    try:
        return read_file(source, limit=MAX_FILE_BYTES)
    except ValueError as error:
        raise value.error(f"{written[:80]!r}: {error}") from error


def _read_specs(value: Located | None, *, multi_gpu: bool) -> tuple[Spec, ...]:
    """The cases of `tests` or `benchmarks`, each a flat mapping, keys in the file's order."""
    specs = []
    for item in value.items() if value else []:
        spec: Spec = {}
        for key, field in item.fields().items():
            if not _SPEC_KEY.fullmatch(key):
                raise field.error("keys consist of letters, digits and _")
            spec[key] = _spec_value(field)
            if key == "world_size" and field.integer() < 1:
                raise field.error(f"world_size is at least 1, not {spec[key]}")
        if not spec:
            raise item.error("this entry has no values")
        if multi_gpu and "world_size" not in spec:
            raise item.error("a multi-GPU task needs world_size in every entry")
        specs.append(spec)
    return tuple(specs)


def _spec_value(value: Located) -> str | int:
    scalar = _spec_scalar(value)
    if isinstance(scalar, str) and not _SPEC_TEXT.fullmatch(scalar):
        raise value.error(
            f"{scalar[:80]!r} cannot be carried to the evaluator: "
            "a letter, then letters, digits, _ . and -"
        )
    return scalar


def _spec_scalar(value: Located) -> str | int:
    if value.node.tag.endswith((":int", ":str")):
        return value.integer() if value.node.tag.endswith(":int") else value.text()
    kind = value.node.tag.rpartition(":")[2]
    raise value.error(f"only whole numbers and text are known here, not {value.shown} ({kind})")


def _check_templates(fields: dict[str, Located], path: Path, root: Path) -> None:
    """Templates are read by clients from the repository; here they must only be right."""
    for language, source in fields["templates"].fields().items() if "templates" in fields else ():
        if language not in LANGUAGES:
            raise source.error(f"{language!r} is none of: {', '.join(LANGUAGES)}")
        _read_source(source, path, root)


def _gpus(value: Located | None) -> tuple[str, ...]:
    """Names of GPU types in their order, each once, whether this service knows them or not."""
    names: list[str] = []
    for item in value.items() if value and not value.is_null else []:
        name = item.text()
        if not _GPU_NAME.fullmatch(name):
            raise item.error(f"{name[:80]!r} is not the name of a GPU type")
        if name not in names:
            names.append(name)
    return tuple(names)


def _texts(value: Located | None) -> tuple[str, ...]:
    return tuple(item.text() for item in value.items()) if value else ()
