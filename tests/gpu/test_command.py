"""`python -S -m runners.gpu` as a runner starts it, and what the package may import."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from runners.gpu import envelope
from runners.gpu.contract import FailureKind, Mode, config_sha256
from runners.gpu.job import run_job
from runners.gpu.process import Identity
from runners.gpu.wire import dumps
from tests.gpu.conftest import IDENTITY, make_config
from tests.gpu.test_hostile_programs import MARK, family_of, grandchild
from tests.synthetic_reports import Launch, write_report

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "jobs").mkdir()
    return {name: tmp_path / "jobs" / name for name in ("config", "result", "phase")}


def start(files):
    arguments = [files["config"], files["result"], "--phase", files["phase"]]
    more = ["--workspace", files["config"].parent]
    return subprocess.Popen(
        [sys.executable, "-S", "-m", "runners.gpu", *map(str, arguments + more)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_profile_comes_back_as_an_envelope(machine, files, tmp_path):
    files["config"].write_bytes(dumps(make_config(mode=Mode.PROFILE, selected=(1,))))
    process = start(files)
    stdout, stderr = process.communicate(timeout=120)

    assert (process.returncode, stdout, stderr) == (0, "", "")
    read = envelope.read(files["result"])
    assert read.header.status == "finished"
    assert read.outcome.runs["profile.1"].capture.launches == 1
    assert read.outcome.system.hostname == ""
    assert files["phase"].read_text() == "capturing benchmark 1 of 1 (index 1)\n"
    read.extract("profile.1.zip", tmp_path / "out.zip")
    assert sorted(path.name for path in files["config"].parent.iterdir()) == [
        "config",
        "phase",
        "result",
    ]


def test_a_large_report_does_not_grow_the_harness(machine, files):
    """FR-21: it is walked, packed and copied in pieces."""
    machine.plan_capture()
    write_report(machine.tools / "made.ncu-rep", [Launch(name="k")], pad_bytes=80_000_000)
    files["config"].write_bytes(dumps(make_config(mode=Mode.PROFILE)))
    process = start(files)
    resource.prlimit(process.pid, resource.RLIMIT_DATA, (64 * 2**20, 64 * 2**20))
    process.communicate(timeout=120)

    assert process.returncode == 0
    assert envelope.read(files["result"]).outcome.runs["profile.0"].capture.launches == 1
    assert files["result"].stat().st_size > 80_000_000


@pytest.mark.parametrize(
    ("content", "job_id"),
    [
        (b"nonsense", ""),
        (b'{"job_id": "job-7", "attempt": 3, "schema": 999}', "job-7"),
        (b'{"job_id": 5, "attempt": "x"}', ""),
    ],
)
def test_a_config_that_can_not_be_read_still_gives_an_envelope(machine, files, content, job_id):
    files["config"].write_bytes(content)
    process = start(files)
    process.communicate(timeout=60)

    assert process.returncode == 0
    outcome = envelope.read(files["result"]).outcome
    assert outcome.failure.kind is FailureKind.BAD_CONFIG
    assert outcome.job_id == job_id


def test_a_harness_that_is_told_to_stop_takes_the_family_with_it(machine, files):
    """FR-14, FR-24: a cancelled job leaves nothing that keeps the GPU busy."""
    mark = f"{MARK}-{time.monotonic_ns()}"
    submission = "import time\ndef custom_kernel(data):\n" + "".join(
        f"    {line}\n" for line in [*grandchild(mark).splitlines(), "time.sleep(600)"]
    )
    files["config"].write_bytes(dumps(make_config(submission)))
    process = start(files)
    while not family_of(mark):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)

    assert process.returncode == 128 + signal.SIGTERM
    assert family_of(mark) == []
    assert not files["result"].exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="needs a Python for all users")
def test_a_submission_can_run_as_another_user(machine, monkeypatch, tmp_path_factory):
    """Root starts the harness, and the submission is nobody, who sees no neighbour's files."""
    monkeypatch.setenv("KERNELBOT_PYTHON", "/usr/bin/python3")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    workspace = Path(tempfile.mkdtemp(dir="/var/tmp"))
    submission = IDENTITY + (
        "import os\n"
        "print(os.getuid(), os.getgid(), os.getgroups())\n"
        "open(os.path.join(os.environ['HOME'], 'cache'), 'w').close()\n"
        "try:\n"
        "    print(os.listdir(os.path.dirname(os.environ['HOME'])))\n"
        "except PermissionError:\n"
        "    print('refused')\n"
    )
    outcome, _ = run_job(
        make_config(submission),
        workspace,
        report_phase=lambda phase: None,
        identity=Identity(uid=65534, gid=65534),
    )
    shutil.rmtree(workspace)

    assert outcome.runs["test"].run.passed
    assert outcome.runs["test"].run.stdout == "65534 65534 []\nrefused\n"


def test_the_package_needs_nothing_but_the_standard_library():
    program = (
        "import importlib, pkgutil, sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "import runners.gpu\n"
        "for module in pkgutil.iter_modules(runners.gpu.__path__):\n"
        "    if module.name != '__main__':\n"
        "        importlib.import_module(f'runners.gpu.{module.name}')\n"
        "import runners.gpu.__main__\n"
        "tops = {name.partition('.')[0] for name in sys.modules} - {'runners', '__main__'}\n"
        "print(sorted(tops - set(sys.stdlib_module_names)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-I", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_the_fingerprint_is_that_of_the_wire_contract():
    """The values of the contract's test vector (section 17.4)."""
    config = replace(
        make_config(),
        lang="py",
        main="eval.py",
        sources={
            "eval.py": "print('evaluator')\n",
            "submission.py": "def custom_kernel(data):\n    return data\n",
        },
        headers=None,
        arch="100",
        tests=({"rows": 64, "cols": 48, "seed": 101},),
        benchmarks=(
            {"rows": 1024, "cols": 512, "seed": 7},
            {"rows": 4096, "cols": 2048, "seed": 8},
        ),
    )
    options = json.loads(
        '{"benchmark_index": 1, "ncu_kernel_name": "regex:rowsum", "ncu_launch_count": 2}'
    )
    assert config_sha256(config, options) == (
        "4c3febeb71457eeef69447db09472952bec095d40d7fe5a6e7de695d58ae4ad8"
    )
    assert config_sha256(config, None) != config_sha256(config, options)
    assert config_sha256(replace(config, seed=5), options) == config_sha256(config, options)
