"""The benchmark commands run, at tiny sizes, and print what docs/performance.md is made from."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.server.service import ROOT

TINY = "--requests 1 --clients 2 --report-bytes 100000 --rounds 1 --waiting 2 --hold-s 0"


def test_the_load_benchmark_measures_each_part():
    command = [sys.executable, "-m", "benchmarks.load", "--web-processes", "1", *TINY.split()]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert told["latency"]["results"] == 1
    assert told["throughput"]["2"]["results"] == 2
    assert told["delivery"]["results"] == told["delivery"]["results_wanted"] == 4
    assert told["waiting"]["answered"] == 2
    assert told["waiting"]["dropped"] == 0
    assert min(told["peak_pss"].values()) > 0
