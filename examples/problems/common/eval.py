"""The evaluator: `eval.py <test|benchmark|leaderboard|profile> <cases file>`.

This process holds the descriptor for the results and never loads the submission. Each case runs in
a worker of its own (worker.py), which does not inherit the descriptor, and whose answers are data
and not pickles.

Exit codes: 0 right, 112 a case failed, 110 a call of the GPU failed, 111 no descriptor, 113 bad
cases file, 2 wrong usage; 128 + the signal, or 1, when a worker dies.
"""

import json
import os
import sys
from contextlib import closing
from multiprocessing import get_context
from multiprocessing.connection import Connection

from cases import Case, read_cases

STATISTICS = ("runs", "mean", "std", "err", "best", "worst")  # times in nanoseconds
MAX_ANSWER_BYTES = 1_000_000
MODES = ("test", "benchmark", "leaderboard", "profile")
DEVICE_FAILED, NO_RESULTS, CASE_FAILED, BAD_CASES, USAGE = 110, 111, 112, 113, 2


class WorkerDied(Exception):
    """The process that ran the submission ended without an answer; `code` as Python gives it."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        # Of exit codes only 1: the submission must not pass for a fault of somebody else.
        self.exit_code = 128 - code if code < 0 else 1
        how = f"with exit code {code}" if code >= 0 else f"by signal {-code}"
        self.reason = f"the submission's process ended {how} before it gave an answer"


class Results:
    """`key: value` lines on the descriptor that the runner opened."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._file = os.fdopen(descriptor, "w", encoding="utf-8")

    def close(self) -> None:
        self._file.close()

    def say(self, key: str, value: object) -> None:
        text = str(value).replace("\r", "").replace("\n", "\\n")
        self._file.write(f"{key}: {text}\n")
        self._file.flush()


def start_worker(sender: Connection, mode: str, case: Case) -> None:
    """The worker's first function: only there are the problem and its libraries imported."""
    import worker

    worker.run_case(sender, mode, case)


def run_in_worker(mode: str, case: Case) -> dict:
    """Run one case in a fresh process and give its answer. Raises WorkerDied."""
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=start_worker, args=(sender, mode, case))
    process.start()
    sender.close()
    try:
        answer = receiver.recv_bytes(MAX_ANSWER_BYTES)
    except (EOFError, OSError):
        answer = b""
    process.join()
    if not answer:
        raise WorkerDied(process.exitcode or 0)
    return json.loads(answer)


def evaluate(mode: str, cases: list[tuple[str, Case]], results: Results) -> int:
    """Run all cases in their order and report each. Gives the exit code."""
    kind = "test" if mode == "test" else "benchmark"
    results.say(f"{kind}-count", len(cases))
    code = 0
    for index, (line, case) in enumerate(cases):
        place = f"{kind}.{index}"
        results.say(f"{place}.spec", line)
        try:
            answer = run_in_worker(mode, case)
        except WorkerDied as death:
            answer, code = {"error": death.reason}, death.exit_code
        values = answer.get("values", {})
        for key in STATISTICS:
            if key in values:
                results.say(f"{place}.{key}", values[key])
        results.say(f"{place}.status", "fail" if "error" in answer else "pass")
        if "error" in answer:
            results.say(f"{place}.error", answer["error"])
            code = code or (DEVICE_FAILED if answer.get("device_failed") else CASE_FAILED)
        if code not in (0, CASE_FAILED):
            break
    results.say("check", "fail" if code else "pass")
    return code


def main() -> int:
    if len(sys.argv) != 3 or sys.argv[1] not in MODES:
        print(f"usage: eval.py {'|'.join(MODES)} CASES_FILE", file=sys.stderr)
        return USAGE
    seed = os.environ.pop("POPCORN_SEED", "")
    try:
        results = Results(int(os.environ.pop("POPCORN_FD", "")))
    except (ValueError, OSError) as error:
        print(f"POPCORN_FD names no usable descriptor: {error}", file=sys.stderr)
        return NO_RESULTS
    try:
        with open(sys.argv[2], encoding="utf-8") as file:
            cases = read_cases(file.read(), int(seed) if seed else None)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return BAD_CASES
    with closing(results):
        return evaluate(sys.argv[1], cases, results)


if __name__ == "__main__":
    sys.exit(main())
