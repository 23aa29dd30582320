"""What a deployment at Modal is called and tagged, for who deploys it and for who calls it."""

from __future__ import annotations

from runners.gpu.build import build_id
from runners.gpu.contract import SCHEMA

# GPU type of this service to what Modal is asked for. One GPU each and never a list, which would
# be failover; a plain H100 may be given an H200, hence the exclamation mark.
MODAL_GPUS = {
    "T4": "T4",
    "L4": "L4",
    "A100": "A100-80GB",
    "H100": "H100!",
    "B200": "B200",
}
# Newer ones gave NaN for counters of the B200 (docs/modal.md).
NCU_VERSION = "2025.2.1"
# Modal's time limit lies this far beyond the job's, so that our own limit always strikes first.
TIMEOUT_MARGIN_S = 120


def function_name(gpu: str) -> str:
    return f"run_{gpu.lower()}"


def app_tags(*, deployment: str, max_containers: int) -> dict[str, str]:
    """What a deployed app says about itself; values are letters, digits, `-`, `.` and `_`."""
    return {
        "deployment": deployment,
        "schema": str(SCHEMA),
        "build": build_id(),
        "ncu": NCU_VERSION,
        "max-containers": str(max_containers),
    }
