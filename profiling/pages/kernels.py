"""The table of a capture's launches, in any order that its columns give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from profiling.pages.values import dimensions, shown_metric
from profiling.reports.facts import KEY_METRICS

DURATION = "gpu__time_duration.sum"
# Grid and block have columns of their own, the GPU is told once for all launches.
METRICS = {
    name: label
    for name, label in KEY_METRICS.items()
    if not name.startswith(("launch__", "device__"))
}
_SORTS = {
    "launch": "Launch",
    "kernel": "Kernel",
    "grid": "Grid",
    "block": "Block",
} | {f"m{place}": label for place, label in enumerate(METRICS.values())}
_METRIC_OF = {f"m{place}": name for place, name in enumerate(METRICS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """`key` is what browsers sort by: a number as text, or the text itself."""

    label: str  # of its column, for narrow windows, where a row is a card
    shown: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow:
    index: int
    href: str
    name: str
    demangled: str
    chosen: bool
    cells: tuple[Cell, ...]  # grid, block, then METRICS


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    label: str
    href: str  # sorts by it, the other way round where it already is
    order: str  # "ascending", "descending" or "", as aria-sort has it
    is_number: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTable:
    columns: tuple[Column, ...]
    rows: tuple[KernelRow, ...]
    left_out: int


def longest_launch(kernels: list[dict[str, Any]]) -> int:
    durations = [_number(kernel, DURATION) or 0.0 for kernel in kernels]
    return durations.index(max(durations)) if durations else 0


def kernel_table(
    kernels: list[dict[str, Any]],
    *,
    launch_count: int,
    sort: str,
    chosen: int,
    address: Callable[..., str],
) -> KernelTable:
    """`sort` is a key of the columns, with "-" for the largest first; anything else is "launch".

    `address(launch=…, sort=…)` gives the address of the page with another choice.
    """
    by, descending = sort.removeprefix("-"), sort.startswith("-")
    if by not in _SORTS:
        by, descending = "launch", False
    order = sorted(enumerate(kernels), key=lambda each: _key(by, *each), reverse=descending)
    now = f"-{by}" if descending else by
    return KernelTable(
        columns=tuple(
            Column(
                label=label,
                href=address(sort=_next_sort(name, now)),
                order=("descending" if descending else "ascending") if name == by else "",
                is_number=name != "kernel",
            )
            for name, label in _SORTS.items()
        ),
        rows=tuple(
            KernelRow(
                index=index,
                href=address(launch=index, sort=now),
                name=kernel["name"],
                demangled=kernel["demangled"],
                chosen=index == chosen,
                cells=_cells(kernel),
            )
            for index, kernel in order
        ),
        left_out=max(0, launch_count - len(kernels)),
    )


def _next_sort(name: str, now: str) -> str:
    """What a click on a column asks for: the other way round, or largest first."""
    if now.removeprefix("-") == name:
        return name if now.startswith("-") else f"-{name}"
    return name if name in ("launch", "kernel") else f"-{name}"


def _cells(kernel: dict[str, Any]) -> tuple[Cell, ...]:
    sizes = [
        Cell(label=_SORTS[which], shown=dimensions(kernel[which]), key=str(_size(kernel[which])))
        for which in ("grid", "block")
    ]
    metrics = []
    for name, label in METRICS.items():
        value = _number(kernel, name)
        metrics.append(
            Cell(
                label=label,
                shown=shown_metric(kernel["metrics"].get(name)),
                key="" if value is None else str(value),
            )
        )
    return (*sizes, *metrics)


def _key(by: str, index: int, kernel: dict[str, Any]) -> Any:
    if by == "launch":
        return index
    if by == "kernel":
        return kernel["name"]
    if by in ("grid", "block"):
        return _size(kernel[by])
    value = _number(kernel, _METRIC_OF[by])
    return -1.0 if value is None else value


def _size(sizes: list[int] | None) -> int:
    product = 1 if sizes else 0
    for size in sizes or ():
        product *= size
    return product


def _number(kernel: dict[str, Any], name: str) -> float | None:
    value = kernel["metrics"].get(name, {}).get("value")
    return None if value is None or isinstance(value, str) else float(value)
