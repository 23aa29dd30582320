"""All metrics of a launch, section by section as ncu's details page has them."""

from __future__ import annotations

from dataclasses import dataclass

from profiling.pages.values import shown, state_shown
from profiling.reports.details import LaunchDetails, ReportDetails


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    label: str
    metric: str
    shown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSection:
    name: str
    rows: tuple[MetricRow, ...]


def metric_sections(details: ReportDetails, launch: LaunchDetails) -> list[MetricSection]:
    found = [
        MetricSection(
            name=section.name or section.identifier,
            rows=tuple(
                _row(details, launch, metric, label)
                for metric, label in section.rows.items()
                if metric in launch.metrics
            ),
        )
        for section in details.sections
        if section.identifier in launch.sections
    ]
    return [section for section in found if section.rows]


def _row(details: ReportDetails, launch: LaunchDetails, metric: str, label: str) -> MetricRow:
    state = launch.states.get(metric)
    said = state_shown(state) if state else shown(launch.metrics[metric], details.unit(metric))
    return MetricRow(label=label or metric, metric=metric, shown=said)
