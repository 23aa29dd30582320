"""python -m tests.faults --seconds 600 --seed 7: run, print the summary, end with 1 on a violation."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.faults.run import run
from tests.faults.stack import missing_programs


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.faults", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="how long faults come")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--folder", type=Path, help="for logs and summary.json; kept")
    arguments = parser.parse_args()
    if missing := missing_programs():
        parser.error(f"not installed: {', '.join(missing)}")
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="kernelbot-faults-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"logs are in {folder}", file=sys.stderr)
    outcome = run(folder, seed=arguments.seed, seconds=arguments.seconds, clients=arguments.clients)
    print(json.dumps(outcome.summary, indent=1))
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
