"""From an evaluator's benchmark times to one score in seconds; lower is better (14.1).

The times come from beside a stranger's code, so whatever is not a plain positive time gives no score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

NS_PER_S = 1e9
# Beyond it a count is a mistake, or an attempt to keep us busy.
BENCHMARKS_MAX = 10_000


class NoScore(ValueError):
    """The results do not tell how fast the submission was; the message says why."""


def score_of(ranking_by: str, result: Mapping[str, str]) -> float:
    """Seconds. `result` is that of a leaderboard stage (wire-contract.md, 5.5). Raises NoScore."""
    means = read_means(result)
    if ranking_by == "last":
        if len(means) != 1:
            raise NoScore(f"{len(means)} benchmarks were reported, one is ranked")
        return means[0]
    if ranking_by == "mean":
        return math.fsum(mean / len(means) for mean in means)
    # By logs: the product of many times of microseconds is less than any float.
    return math.exp(math.fsum(map(math.log, means)) / len(means))


def read_means(result: Mapping[str, str]) -> list[float]:
    """The mean time of each benchmark in seconds. Raises NoScore."""
    count = result.get("benchmark-count", "")
    if not (count.isascii() and count.isdecimal() and len(count) < 10):
        raise NoScore("the number of benchmarks was not reported")
    if not 1 <= int(count) <= BENCHMARKS_MAX:
        raise NoScore(f"{int(count)} benchmarks were reported")
    return [_mean(result, index) for index in range(int(count))]


def _mean(result: Mapping[str, str], index: int) -> float:
    told = result.get(f"benchmark.{index}.mean", "")
    try:
        nanoseconds = float(told)
    except ValueError:
        nanoseconds = math.nan
    seconds = nanoseconds / NS_PER_S
    if not 0 < seconds < math.inf:
        raise NoScore(f"the mean time of benchmark {index} is {told[:40]!r}")
    return seconds
