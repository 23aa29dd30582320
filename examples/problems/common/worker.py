"""What runs beside the submission: one case, in a process of its own.

Every call gets a fresh copy of the input and is judged by another, so that a submission that
writes into its input changes neither the next call nor the verdict. Answers are JSON.
"""

import json
import math
import sys
import time
import traceback
from multiprocessing.connection import Connection

import device
import reference

MAX_REPEATS = 100
MIN_REPEATS = 3
ENOUGH_NS = 2e9  # of measured time
WALL_LIMIT_S = 10
GOOD_ERROR = 0.001  # of the mean


def run_case(sender: Connection, mode: str, case: dict) -> None:
    """Run the submission on `case` and send {values} or {error, device_failed}."""
    run = {
        "test": run_test,
        "benchmark": run_benchmark,
        "leaderboard": run_leaderboard,
        "profile": run_profile,
    }
    try:
        answer = run[mode](case)
    except Exception as error:  # noqa: BLE001  whatever a submission raises is its answer
        traceback.print_exc()
        answer = {
            "error": f"{type(error).__name__}: {error}",
            "device_failed": device.is_device_failure(error),
        }
    sys.stdout.flush()
    sys.stderr.flush()
    sender.send_bytes(json.dumps(answer).encode())


def load_submission():
    from submission import custom_kernel

    return custom_kernel


def verdict(data, output) -> dict:
    problem = reference.check(data, output)
    return {"error": problem} if problem else {}


def run_test(case: dict) -> dict:
    kernel, data = load_submission(), reference.generate_input(**case)
    output = kernel(device.copy(data))
    device.synchronize()
    return verdict(data, output)


def run_benchmark(case: dict) -> dict:
    return measure(case, recheck=False)


def run_leaderboard(case: dict) -> dict:
    return measure(case, recheck=True)


def measure(case: dict, *, recheck: bool) -> dict:
    """Time calls until the mean is known well; `recheck` gives each its own input and verdict."""
    kernel, data = load_submission(), reference.generate_input(**case)
    # Untimed: compilation on first use, and the one check of a plain benchmark.
    answer = verdict(data, kernel(device.copy(data)))
    times: list[float] = []
    started = time.monotonic()
    while not answer and not is_enough(times, time.monotonic() - started):
        if recheck:
            data = reference.generate_input(**case | {"seed": case["seed"] + 13 * len(times) + 13})
        output, nanoseconds = device.time_call(kernel, device.copy(data))
        times.append(nanoseconds)
        if recheck:
            answer = verdict(data, output)
    return answer or {"values": statistics(times)}


def is_enough(times: list[float], wall_s: float) -> bool:
    if len(times) < MIN_REPEATS:
        return False
    if len(times) >= MAX_REPEATS or sum(times) > ENOUGH_NS or wall_s > WALL_LIMIT_S:
        return True
    facts = statistics(times)
    return facts["err"] < GOOD_ERROR * facts["mean"]


def statistics(times: list[float]) -> dict[str, float]:
    """Of times in nanoseconds; `err` is the standard error of the mean."""
    count, mean = len(times), math.fsum(times) / len(times)
    deviation = math.sqrt(math.fsum((t - mean) ** 2 for t in times) / (count - 1))
    return {
        "runs": count,
        "mean": mean,
        "std": deviation,
        "err": deviation / math.sqrt(count),
        "best": min(times),
        "worst": max(times),
    }


def run_profile(case: dict) -> dict:
    """One call inside the range, on an input that no call has seen; all else is outside of it."""
    kernel, data = load_submission(), reference.generate_input(**case)
    kernel(device.copy(data))  # compilation on first use is not what is profiled
    fresh = device.copy(data)
    device.synchronize()
    with device.profiling_range("custom_kernel"):
        output = kernel(fresh)
        device.synchronize()
    return verdict(data, output)
