"""Two reports side by side: launch by launch, metric by metric. Pure functions on details."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from profiling.reports.details import LaunchDetails, MetricState, ReportDetails
from profiling.reports.facts import KEY_METRICS
from profiling.reports.summary import number

COMPARED_PAIRS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricChange:
    """`change_pct` is of the base's value; None where that is 0 or one of both has no value."""

    metric: str
    label: str
    unit: str
    base: float | None
    other: float | None
    base_state: str  # "ok", "absent", "no_value", "nan", "inf"
    other_state: str
    change: float | None
    change_pct: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPair:
    """A launch of each side; None for one that has no counterpart."""

    name: str
    occurrence: int  # which of the launches of that name, from 0
    base_index: int | None
    other_index: int | None
    grid_differs: bool
    block_differs: bool
    metrics: tuple[MetricChange, ...]


def compare(
    base: ReportDetails, other: ReportDetails, *, all_metrics: bool = False
) -> tuple[LaunchPair, ...]:
    """Launches are matched by name, and the n-th of a name with the n-th."""
    labels = _labels(base) | _labels(other)
    return tuple(
        _pair(name, place, one, two, _Tables(base, other, labels), all_metrics=all_metrics)
        for name, place, one, two in _matched(base, other)
    )[:COMPARED_PAIRS]


@dataclass(frozen=True, slots=True)
class _Tables:
    base: ReportDetails
    other: ReportDetails
    labels: dict[str, str]


def _matched(
    base: ReportDetails, other: ReportDetails
) -> Iterator[tuple[str, int, LaunchDetails | None, LaunchDetails | None]]:
    """In the order of the base; what only the other has comes last."""
    waiting: dict[str, list[LaunchDetails]] = defaultdict(list)
    for launch in other.launches:
        waiting[launch.name].append(launch)
    seen: dict[str, int] = defaultdict(int)
    for launch in base.launches:
        place = seen[launch.name]
        seen[launch.name] += 1
        found = waiting[launch.name]
        yield launch.name, place, launch, found[place] if place < len(found) else None
    for name, launches in waiting.items():
        for place in range(seen[name], len(launches)):
            yield name, place, None, launches[place]


def _pair(
    name: str,
    place: int,
    base: LaunchDetails | None,
    other: LaunchDetails | None,
    tables: _Tables,
    *,
    all_metrics: bool,
) -> LaunchPair:
    both = base is not None and other is not None
    return LaunchPair(
        name=name,
        occurrence=place,
        base_index=base.index if base else None,
        other_index=other.index if other else None,
        grid_differs=both and base.grid != other.grid,  # type: ignore[union-attr]
        block_differs=both and base.block != other.block,  # type: ignore[union-attr]
        metrics=tuple(
            _change(metric, base, other, tables) for metric in _metrics(base, other, all_metrics)
        )
        if base is not None and other is not None
        else (),
    )


def _metrics(
    base: LaunchDetails | None, other: LaunchDetails | None, all_metrics: bool
) -> Iterator[str]:
    keys = [name for name in KEY_METRICS if not name.startswith("device__")]
    yield from keys
    if all_metrics and base is not None and other is not None:
        listed = sorted({*base.metrics, *other.metrics} - set(keys))
        for name in listed:
            if number(base, name) is not None or number(other, name) is not None:
                yield name


def _change(
    metric: str, base: LaunchDetails, other: LaunchDetails, tables: _Tables
) -> MetricChange:
    one, two = number(base, metric), number(other, metric)
    change = two - one if one is not None and two is not None else None
    return MetricChange(
        metric=metric,
        label=KEY_METRICS.get(metric) or tables.labels.get(metric, ""),
        unit=tables.base.unit(metric) or tables.other.unit(metric),
        base=one,
        other=two,
        base_state=_state(base, metric),
        other_state=_state(other, metric),
        change=change,
        change_pct=100 * change / abs(one) if change is not None and one else None,
    )


def _state(launch: LaunchDetails, metric: str) -> str:
    if metric not in launch.metrics:
        return MetricState.ABSENT
    return launch.states.get(metric, MetricState.OK)


def _labels(details: ReportDetails) -> dict[str, str]:
    return {metric: label for each in details.sections for metric, label in each.rows.items()}
