"""Every value of the samples' index, which another program wrote, is read back equal."""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import pairwise
from typing import Any

from profiling.reports.facts import Problem, ReportFacts
from profiling.reports.reader import read_report
from profiling.reports.settings import CaptureSettings
from tests.reports.samples import INDEX, each_sample, needs_samples, sample

# Where a sample comes from and how fast that other program was: nothing that a report says.
OF_THE_INDEX = {
    *("source", "why", "parsed_with"),
    *("fresh_process_read_seconds", "fresh_process_max_rss_mb"),
}
OPTIONS_WITH_VALUE = {
    "--replay-mode": "replay_mode",
    "--clock-control": "clock_control",
    "--cache-control": "cache_control",
    "--kernel-name-base": "kernel_name_base",
    "--set": "set",
    "-c": "launch_count",
}
SWITCHES = {"--import-source": "import_source", "--apply-rules": "apply_rules"}


class Looked(dict[str, Any]):
    """A part of the index that remembers which of its keys were asked for."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__({key: looked(value) for key, value in told.items()})
        self.seen: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.seen.add(key)
        return super().__getitem__(key)

    def unseen(self, place: str = "") -> set[str]:
        missed = {f"{place}{key}" for key in self.keys() - self.seen}
        for key, value in self.items():
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, Looked) and key in self.seen:
                    missed |= part.unseen(f"{place}{key}.")
        return missed


def looked(value: Any) -> Any:
    if isinstance(value, dict):
        return Looked(value)
    return [looked(each) for each in value] if isinstance(value, list) else value


@each_sample
def test_every_value_of_the_index_is_read_back_equal(said):
    index = Looked(said)
    path = sample(index["file"])

    facts = read_report(path)

    content = path.read_bytes()
    assert (len(content), hashlib.sha256(content).hexdigest()) == (index["size"], index["sha256"])
    assert facts.problem is Problem.NONE
    compare_session(facts, index)
    compare_totals(facts, index)
    compare_launches(facts, index["launches"])
    assert index.unseen() == OF_THE_INDEX


@needs_samples
def test_a_key_that_nobody_compares_is_noticed():
    index = Looked(INDEX[0] | {"new": 1, "launches": [{"name": "k", "values": {"a": {"b": 1}}}]})
    assert index["launches"][0]["values"]["a"] == {"b": 1}

    assert index.unseen() >= {"new", "launches.name", "launches.values.a.b"}


def compare_session(facts: ReportFacts, told: Looked) -> None:
    session = facts.session
    assert session.ncu_version == f"{told['ncu_version']} (public-release)"
    assert session.gpu_name == told["gpu"]
    assert session.compute_capability == told["compute_capability"]
    compare_settings(session.settings, told["ncu_command"])
    # Not by the command line: a program behind ncu's options may have one of that name.
    assert bool(session.settings.nvtx) == bool(told["nvtx_actions"])


def compare_settings(settings: CaptureSettings, command: str) -> None:
    """The command line is read for its flags, and nothing else of it is kept (FR-22)."""
    words = command.replace("=", " ").split()
    pairs = list(pairwise(words))
    for flag, name in OPTIONS_WITH_VALUE.items():
        given = [value for word, value in pairs if word == flag]
        if given:
            assert str(getattr(settings, name)) == given[-1], flag
    for flag, name in SWITCHES.items():
        given = [value for word, value in pairs if word == flag]
        if given:
            assert getattr(settings, name) is (given[-1] == "yes"), flag
    assert list(settings.sections) == [value for word, value in pairs if word == "--section"]
    assert list(settings.metrics) == [value for word, value in pairs if word == "--metrics"]


def compare_totals(facts: ReportFacts, told: Looked) -> None:
    details = facts.details
    assert details is not None
    launches, first = details.launches, details.launches[0]
    names = [launch.name for launch in launches]
    counts = [launch.metric_count for launch in launches]
    assert facts.launch_count == details.launch_count == len(launches) == told["actions"]
    assert details.metrics_left_out == 0
    assert len({launch.range for launch in launches}) == told["ranges"]
    assert len(set(names)) == told["distinct_kernel_names"]
    assert names[:5] == told["kernel_names_first5"]
    assert counts[0] == told["metrics_first_action"]
    assert (min(counts), max(counts)) == (told["metrics_min"], told["metrics_max"])
    for state in ("nan", "inf", "no_value"):
        counted = sum(getattr(launch, f"{state}_count") for launch in launches)
        assert counted == told[f"{state}_metrics_total"]
    assert sum(bool(launch.nvtx) for launch in launches) == told["nvtx_actions"]
    assert {launch.workload.value.upper() for launch in launches} == set(told["workload_types"])
    assert sum(launch.rule_count for launch in launches) == told["rule_results_total"]
    with_source = [any(spot.source for spot in launch.hot_spots) for launch in launches]
    assert sum(with_source) == told["actions_with_source_files"]
    assert sorted(first.sections) == sorted(told["sections_first_action"])


def compare_launches(facts: ReportFacts, told: list[Looked]) -> None:
    assert facts.details is not None
    details, seen_in = facts.details, Counter[int]()
    for launch, short, each in zip(details.launches, facts.launches, told, strict=True):
        assert (launch.range, seen_in[launch.range]) == (each["range"], each["action"])
        seen_in[launch.range] += 1
        assert launch.name == short.name == each["name"]
        assert launch.workload.value.upper() == each["workload_type"]
        assert len(launch.metrics) == launch.metric_count == each["metrics"]
        assert launch.nan_count == each["nan_metrics"]
        assert launch.rule_count == each["rule_results"]
        domains = [(nvtx["domain"], tuple(nvtx["ranges"])) for nvtx in each["nvtx"]]
        assert [(nvtx.name, nvtx.push_pop) for nvtx in launch.nvtx] == domains
        values = each["values"]
        for name in values:
            value = values[name]
            state = launch.states.get(name, "ok") if name in launch.metrics else "absent"
            assert (state, launch.metrics.get(name)) == (value["state"], value["value"])
            assert details.unit(name) == (value["unit"] or "")
