"""What `modal deploy runners/modal_app.py` takes: the image, and one Function per GPU type.

Deployed from the top of the checkout, by file, so that the containers get this file and
`runners/gpu` and nothing else: docs/modal.md. Nothing here ran at Modal so far.
"""

from __future__ import annotations

import os
from pathlib import Path

import modal

from runners.gpu.container import run_config
from runners.gpu.deployment import (
    MODAL_GPUS,
    NCU_VERSION,
    TIMEOUT_MARGIN_S,
    app_tags,
    function_name,
)

NCU_PACKAGE = f"nsight-compute-{NCU_VERSION}={NCU_VERSION}.3-1"
CUTLASS_VERSION = "4.5.2"
# The largest sum of a job's time limits (settings.JOB_LIMIT_S) that this deployment can run.
JOB_LIMIT_S = int(os.environ.get("JOB_LIMIT_S", "3000"))
MAX_CONTAINERS = int(os.environ.get("MODAL_MAX_CONTAINERS", "4"))
# popcorn-cli documents `pip install` inside a submission; a competition may want it closed.
BLOCK_NETWORK = os.environ.get("MODAL_BLOCK_NETWORK", "false").lower() in ("1", "true", "yes")
MEMORY_MIB = 65_536
# Above what the submission may use: this process, its harness, and the envelope in memory, twice.
MEMORY_RESERVE_MIB = 8_192
HERE = Path(__file__).resolve().parent

image = (
    modal.Image.from_registry("nvidia/cuda:13.3.0-devel-ubuntu24.04", add_python="3.13")
    .entrypoint([])
    .env({"DEBIAN_FRONTEND": "noninteractive"})
    .run_commands("ln -sf $(which python) /usr/local/bin/python3")
    .apt_install("git", "build-essential", "gcc-13", "g++-13", "clang-18")
    # The package and the path are unproven on this image, so the build itself is the proof.
    .run_commands(
        f"apt-get update && apt-get install -y --no-install-recommends {NCU_PACKAGE}",
        # The image's PATH has CUDA's own ncu first.
        f"ln -sf /opt/nvidia/nsight-compute/{NCU_VERSION}/ncu /usr/local/cuda/bin/ncu",
        f"ln -sf /opt/nvidia/nsight-compute/{NCU_VERSION}/ncu /usr/local/bin/ncu",
        f"ncu --version | grep -F 'Version {NCU_VERSION}.'",
    )
    .uv_pip_install("ninja~=1.11", "wheel~=0.45", "packaging~=25.0", "numpy~=2.3", "pyyaml~=6.0")
    .uv_pip_install(
        "nvidia-cutlass-dsl==4.5.2",
        "cuda-core[cu13]",
        "cuda-python[all]==13.0",
        "cuda-tile==1.4.0",
        "cuda-toolkit[cccl,nvrtc]==13.0.2",
    )
    # Last, so that its own CUDA packages (and triton) win over those of the broader ones.
    .uv_pip_install("torch==2.12.0")
    .run_commands(
        f"git clone --depth 1 --branch v{CUTLASS_VERSION} "
        "https://github.com/NVIDIA/cutlass.git /opt/cutlass"
    )
    .env(
        {
            "CUTLASS_PATH": "/opt/cutlass",
            "CPLUS_INCLUDE_PATH": "/opt/cutlass/include:/opt/cutlass/tools/util/include",
            "JOB_LIMIT_S": str(JOB_LIMIT_S),  # this file is read again inside
        }
    )
    .add_local_file(HERE / "__init__.py", "/root/runners/__init__.py")
    .add_local_dir(HERE / "gpu", "/root/runners/gpu", ignore=["**/__pycache__", "**/*.pyc"])
)

deployment = os.environ.get("MODAL_DEPLOYMENT", "")
if modal.is_local() and not deployment:
    # Two deployments that share an app would end each other's runs.
    raise SystemExit("set MODAL_DEPLOYMENT to the name of this deployment, as its server has it")

app = modal.App(
    os.environ.get("MODAL_APP_NAME", "kernelbot"),
    image=image,
    tags=app_tags(
        deployment=deployment or "known-where-it-was-deployed",
        max_containers=MAX_CONTAINERS,
    ),
)


def run_job(config: bytes) -> bytes:
    """A task config as JSON in, a result envelope out: plain bytes, so nothing is unpickled."""
    return run_config(
        config,
        memory_bytes=(MEMORY_MIB - MEMORY_RESERVE_MIB) * 2**20,
        limit_s=JOB_LIMIT_S + TIMEOUT_MARGIN_S - 30,
    )


for gpu, modal_gpu in MODAL_GPUS.items():
    app.function(
        name=function_name(gpu),
        gpu=modal_gpu,
        cpu=8.0,
        memory=(MEMORY_MIB // 2, MEMORY_MIB),
        timeout=JOB_LIMIT_S + TIMEOUT_MARGIN_S,
        startup_timeout=600,
        retries=0,
        max_containers=MAX_CONTAINERS,
        # A container that ran a stranger's code runs nobody else's, and may not call Modal.
        single_use_containers=True,
        restrict_modal_access=True,
        block_network=BLOCK_NETWORK,
        _experimental_restrict_output=True,
        volumes={},
        secrets=[],
    )(run_job)
