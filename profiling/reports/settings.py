"""The profiler's settings for a capture, as its report knows them (FR-23, FR-43).

Reports that ncu's graphical program ordered have them as a record. All others have the command
line, which also holds paths, names and whatever the program was given: it is looked at for the
flags below, up to the first word that is none, and never kept.

Numbers of fields, in package NV.Profiler.Messages:

    ProfilerSettings: EnableNvtx=1, FilterOptions=5, OtherOptions=6, EnabledSections=7,
        ClockControlMode=8, ImportSource=10, ReplayMode=11
    FilterOptions: KernelName=1, KernelNameBase=2, SkipCount=4, CaptureCount=6, NvtxPushPopScope=7
    OtherOptions: ApplyRules=1, Metrics=2
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from profiling.reports import protobuf
from profiling.reports.text import storable

TEXT_CHARS = 200
LIST_KEPT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureSettings:
    """Empty text and None are what the report does not say. Modes are in lower case."""

    told_by: str = ""  # "settings", "command_line", or ""
    replay_mode: str = ""  # "kernel", "application", "range"
    clock_control: str = ""  # "base", "none"
    cache_control: str = ""  # "all", "none"
    import_source: bool | None = None
    nvtx: bool | None = None
    apply_rules: bool | None = None
    set: str = ""
    sections: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    kernel_name: str = ""
    kernel_name_base: str = ""
    nvtx_include: tuple[str, ...] = ()
    launch_count: int | None = None
    launch_skip: int | None = None


# What ncu does when it is not told otherwise; only a command line leaves things unsaid.
_DEFAULTS = CaptureSettings(
    told_by="command_line",
    replay_mode="kernel",
    clock_control="base",
    cache_control="all",
    import_source=False,
    nvtx=False,
    apply_rules=True,
)

# Flags by the field that they set. Those with `None` take a value too, which is nobody's business.
_TEXTS = {
    "--replay-mode": "replay_mode",
    "--clock-control": "clock_control",
    "--cache-control": "cache_control",
    "--set": "set",
    "--kernel-name": "kernel_name",
    "-k": "kernel_name",
    "--kernel-name-base": "kernel_name_base",
}
_MODES = ("replay_mode", "clock_control", "cache_control", "kernel_name_base")
_LISTS = {"--section": "sections", "--metrics": "metrics", "--nvtx-include": "nvtx_include"}
_NUMBERS = {
    "--launch-count": "launch_count",
    "-c": "launch_count",
    "--launch-skip": "launch_skip",
    "-s": "launch_skip",
}
_SWITCHES = {"--import-source": "import_source", "--apply-rules": "apply_rules"}
_FLAGS = {"--nvtx": "nvtx"}
_WITHOUT_VALUE = frozenset(
    {"--force-overwrite", "-f", "--call-stack", "--quiet", "--verbose", "--csv", "--disable-extra-suffixes"}
)  # fmt: skip
_TRUE = frozenset({"1", "yes", "on", "true"})
# A word, or one in quotes as a command line on Windows has them.
_WORD = re.compile(r'"([^"]*)"|(\S+)')


def from_record(record: bytes) -> CaptureSettings:
    """From an encoded ProfilerSettings."""
    said = protobuf.by_number(record)
    filters, others = (_message(said.get(number)) for number in (5, 6))
    return CaptureSettings(
        told_by="settings",
        replay_mode=_text(said.get(11)).lower(),
        clock_control=_text(said.get(8)).lower(),
        import_source=_switch(said.get(10)),
        nvtx=_switch(said.get(1)),
        apply_rules=_switch(others.get(1)),
        sections=_listed(protobuf.text(said.get(7))),
        metrics=_listed(protobuf.text(others.get(2))),
        kernel_name=_text(filters.get(1)),
        kernel_name_base=_text(filters.get(2)).lower(),
        nvtx_include=_listed(protobuf.text(filters.get(7))),
        # Nothing to skip and no limit are both written as 0.
        launch_count=_number(filters.get(6)) or None,
        launch_skip=_number(filters.get(4)) or None,
    )


def from_command_line(line: str) -> CaptureSettings:
    """What the known flags say, and ncu's defaults for what they leave unsaid."""
    found: dict[str, Any] = {}
    words = [quoted or bare for quoted, bare in _WORD.findall(line)][1:]
    while words and words[0].startswith("-") and words[0] != "--":
        flag, given, value = words.pop(0).partition("=")
        if flag in _FLAGS:
            found[_FLAGS[flag]] = True
        elif flag not in _WITHOUT_VALUE:
            if not given:
                value = words.pop(0) if words else ""
            _note(found, flag, value)
    return replace(_DEFAULTS, **found)


def merged(record: CaptureSettings, command_line: CaptureSettings) -> CaptureSettings:
    """The record, and from the command line what the record has no field for."""
    return replace(
        record,
        cache_control=command_line.cache_control,
        set=command_line.set,
        sections=record.sections or command_line.sections,
        metrics=record.metrics or command_line.metrics,
    )


def _note(found: dict[str, Any], flag: str, value: str) -> None:
    if flag in _TEXTS:
        name = _TEXTS[flag]
        found[name] = storable(value.lower() if name in _MODES else value, TEXT_CHARS)
    elif flag in _LISTS:
        found[_LISTS[flag]] = (*found.get(_LISTS[flag], ()), *_listed(value))[:LIST_KEPT]
    elif flag in _NUMBERS and re.fullmatch("[0-9]{1,9}", value, re.ASCII):
        found[_NUMBERS[flag]] = int(value)
    elif flag in _SWITCHES:
        found[_SWITCHES[flag]] = value.lower() in _TRUE


def _message(value: int | bytes | None) -> dict[int, int | bytes]:
    return protobuf.by_number(value) if isinstance(value, bytes) else {}


def _text(value: int | bytes | None) -> str:
    return storable(protobuf.text(value), TEXT_CHARS)


def _listed(text: str) -> tuple[str, ...]:
    found = [storable(each.strip(), TEXT_CHARS) for each in re.split("[,;]", text) if each.strip()]
    return tuple(found[:LIST_KEPT])


def _switch(value: int | bytes | None) -> bool | None:
    return bool(value) if isinstance(value, int) else None


def _number(value: int | bytes | None) -> int | None:
    return value if isinstance(value, int) and value < 2**31 else None
