"""Which instructions of a launch take the most time, by the warp sampler or by their count.

Runs in the child processes only.
"""

from __future__ import annotations

from typing import Any

SPOTS_KEPT = 20
STALLS_KEPT = 3
INSTRUCTIONS_READ = 100_000  # of a launch
SAMPLES, EXECUTED = "smsp__pcsamp_sample_count", "inst_executed"
_STALLED = "smsp__pcsamp_warps_issue_stalled_"
_REASONS = (
    *("barrier", "branch_resolving", "dispatch_stall", "drain", "imc_miss", "lg_throttle"),
    *("long_scoreboard", "math_pipe_throttle", "membar", "mio_throttle", "misc"),
    *("no_instructions", "not_selected", "short_scoreboard", "sleeping", "tex_throttle", "wait"),
)


def hottest(action: Any) -> list[dict[str, Any]]:
    """In the form of `details.HotSpot`, without SASS and source, the hottest first."""
    samples, executed = _by_address(action, SAMPLES), _by_address(action, EXECUTED)
    first = min([*samples, *executed], default=0)
    stalls = {reason: action.metric_by_name(_STALLED + reason) for reason in _REASONS}
    places = {address: place for place, address in enumerate(samples)}
    return [
        {
            "offset": address - first,
            "samples": samples.get(address) if samples else None,
            "instructions": executed.get(address) if executed else None,
            "stalls": _stalls(stalls, address, places.get(address)),
        }
        for address in _ranked(samples, executed)
    ]


def hottest_addresses(action: Any) -> dict[int, int]:
    """The same instructions: offset to address."""
    samples, executed = _by_address(action, SAMPLES), _by_address(action, EXECUTED)
    first = min([*samples, *executed], default=0)
    return {address - first: address for address in _ranked(samples, executed)}


def _ranked(samples: dict[int, int], executed: dict[int, int]) -> list[int]:
    by = samples if any(samples.values()) else executed
    found = sorted(by, key=lambda address: (-by[address], address))[:SPOTS_KEPT]
    return [address for address in found if by[address] > 0]


def _by_address(action: Any, name: str) -> dict[int, int]:
    """A metric's value at each instruction, in the order of the report."""
    metric = action.metric_by_name(name)
    if metric is None or not metric.has_correlation_ids():
        return {}
    addresses = metric.correlation_ids()
    count = min(metric.num_instances(), addresses.num_instances(), INSTRUCTIONS_READ)
    return {addresses.as_uint64(at): metric.as_uint64(at) for at in range(count)}


def _stalls(stalls: dict[str, Any], address: int, place: int | None) -> dict[str, int]:
    """The metrics of stalls list the same instructions in the same order as the samples do."""
    found = {}
    for reason, metric in stalls.items():
        if place is None or metric is None or place >= metric.num_instances():
            continue
        if metric.has_correlation_ids() and metric.correlation_ids().as_uint64(place) == address:
            found[reason] = metric.as_uint64(place)
    ranked = sorted(found, key=lambda reason: -found[reason])[:STALLS_KEPT]
    return {reason: found[reason] for reason in ranked if found[reason] > 0}
