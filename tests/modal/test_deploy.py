"""What the deploy file asks Modal for, read from what the real client sends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runners.gpu.build import build_id
from runners.gpu.contract import SCHEMA
from runners.gpu.deployment import MODAL_GPUS, function_name
from tests.modal.conftest import DEPLOYMENT, Modal

ROOT = Path(__file__).resolve().parents[2]


def deploy(fake, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "MODAL_DEPLOYMENT": DEPLOYMENT}
    return subprocess.run(
        [sys.executable, "-m", "modal", "deploy", "runners/modal_app.py"],
        cwd=ROOT,
        env=environment | fake.environment() | variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def deployed(fake):
    done = deploy(fake)
    assert done.returncode == 0, done.stdout + done.stderr
    return fake


def functions(fake) -> dict[str, dict]:
    return {each["name"]: each["definition"] for each in fake.state()["functions"]}


def test_each_gpu_type_has_one_function_with_one_gpu_and_all_the_safety(deployed):
    found = functions(deployed)

    assert {function_name(gpu) for gpu in MODAL_GPUS} <= set(found)
    for gpu, modal_gpu in MODAL_GPUS.items():
        function = found[function_name(gpu)]
        config = function["resources"]["gpuConfig"]
        assert (config["gpuType"], config["count"]) == (modal_gpu, 1)
        assert function["untrusted"], "no access to Modal's own API"
        assert function["singleUseContainers"]
        assert function.get("retryPolicy", {}).get("retries", 0) == 0
        assert function["supportedOutputFormats"] == ["DATA_FORMAT_CBOR"]
        for absent in ("secretIds", "volumeMounts", "cloudBucketMounts", "blockNetwork"):
            assert not function.get(absent)
        assert (function["timeoutSecs"], function["startupTimeoutSecs"]) == (3120, 600)
        assert function["resources"]["memoryMbMax"] > 0


def test_the_gpu_names_are_those_that_modal_documents():
    assert list(MODAL_GPUS.values()) == ["T4", "L4", "A100-80GB", "H100!", "B200"]


def test_the_image_is_cuda_13_3_with_ncu_2025_2_1_or_its_build_fails(deployed):
    commands = [
        line
        for request in deployed.requests("ImageGetOrCreate")
        for line in request["image"].get("dockerfileCommands", [])
    ]
    text = "\n".join(commands)

    assert "FROM nvidia/cuda:13.3.0-devel-ubuntu24.04" in text
    assert "nsight-compute-2025.2.1=2025.2.1.3-1" in text
    check = next(n for n, line in enumerate(commands) if "ncu --version | grep -F" in line)
    link = next(n for n, line in enumerate(commands) if "/usr/local/cuda/bin/ncu" in line)
    assert link < check
    assert "'Version 2025.2.1.'" in commands[check]
    for tool in ("torch==", "nvidia-cutlass-dsl", "cuda-python", "cccl", "ninja", "g++-13"):
        assert tool in text
    assert "cutlass.git /opt/cutlass" in text


def test_the_containers_get_the_gpu_side_and_no_other_file_of_ours(deployed):
    mounts = deployed.requests("MountGetOrCreate")
    mounted = {each["filename"] for mount in mounts for each in mount.get("files", [])}

    gpu_side = {f"/root/runners/gpu/{path.name}" for path in (ROOT / "runners/gpu").glob("*.py")}
    assert mounted == gpu_side | {"/root/modal_app.py", "/root/runners/__init__.py"}
    assert (ROOT / "runners/__init__.py").read_text() == ""


def test_the_app_says_what_was_deployed_and_by_whom(deployed):
    (app,) = (each for each in deployed.state()["apps"] if each["tags"].get("build") == build_id())

    assert app["name"] == "kernelbot"
    assert app["tags"] == {
        "deployment": DEPLOYMENT,
        "schema": str(SCHEMA),
        "build": build_id(),
        "ncu": "2025.2.1",
        "max-containers": "4",
    }


def test_what_is_deployed_passes_the_preflight(deployed, modal: Modal):
    assert modal.start()


def test_what_differs_between_deployments_is_set_at_deploy(fake, modal_settings):
    done = deploy(
        fake,
        MODAL_BLOCK_NETWORK="1",
        MODAL_APP_NAME="contest",
        MODAL_MAX_CONTAINERS="9",
        JOB_LIMIT_S="600",
    )

    assert done.returncode == 0, done.stderr
    (app,) = (each for each in fake.state()["apps"] if each["name"] == "contest")
    assert app["tags"]["max-containers"] == "9"
    function = functions(fake)["run_b200"]
    assert function["blockNetwork"]
    assert function["timeoutSecs"] == 720


def test_a_deployment_without_a_name_is_refused(fake):
    done = deploy(fake, MODAL_DEPLOYMENT="")

    assert done.returncode != 0
    assert "MODAL_DEPLOYMENT" in done.stdout + done.stderr
