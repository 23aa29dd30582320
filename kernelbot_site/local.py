"""The service on one machine with nothing configured: `python -m kernelbot_site.local COMMAND`.

Runs any command of manage.py with an environment made for this machine: SQLite and local files
under var/, a secret key of its own, and the GPUs that are really here. Whatever the caller's
environment already sets wins.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from django.core.management import execute_from_command_line

BASE_DIR = Path(__file__).resolve().parent.parent


def read_or_make_secret(path: Path) -> str:
    """A secret of this machine, readable by its owner alone."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(50))
    return path.read_text()


def find_local_gpu() -> tuple[str, dict[str, Any]] | None:
    """Name and fields of the first GPU of this machine, if `ncu` is here to profile on it."""
    nvidia_smi = shutil.which("nvidia-smi")
    if nvidia_smi is None or shutil.which("ncu") is None:
        return None
    query = [nvidia_smi, "--query-gpu=name,compute_cap", "--format=csv,noheader"]
    answer = subprocess.run(query, capture_output=True, text=True, check=False, timeout=30)
    name, _, capability = answer.stdout.partition("\n")[0].rpartition(", ")
    if answer.returncode != 0 or not name:
        return None
    sm = capability.replace(".", "").strip()
    # Hopper's kernels want its architecture-specific features.
    return short_name(name), {"runner": "local", "sm": f"{sm}a" if sm == "90" else sm}


def short_name(name: str) -> str:
    """As competitions call it: "NVIDIA A100-SXM4-80GB" is A100, "NVIDIA GeForce RTX 4090" RTX4090."""
    words = [word for word in name.split() if word not in ("NVIDIA", "Tesla", "GeForce", "Quadro")]
    return "".join(words[:2]) if words[0] == "RTX" else words[0].partition("-")[0]


def gpu_types_here() -> dict[str, dict[str, Any]]:
    """A CPU for the CPU example, this machine's GPU, and a B200 that is replayed where none is."""
    types: dict[str, dict[str, Any]] = {"CPU": {"runner": "local", "max_in_flight": 2}}
    gpu = find_local_gpu()
    if gpu is None:
        types["B200"] = {"runner": "recorded", "sm": "100", "ncu": True, "max_in_flight": 4}
    else:
        name, fields = gpu
        types[name] = fields | {"ncu": True}
    return types


def main() -> None:
    data_dir = Path(os.environ.setdefault("DATA_DIR", str(BASE_DIR / "var")))
    os.environ.setdefault("SECRET_KEY", read_or_make_secret(data_dir / "secret_key"))
    os.environ.setdefault("ADMIN_TOKEN", read_or_make_secret(data_dir / "admin_token"))
    os.environ.setdefault("GPU_TYPES", json.dumps(gpu_types_here()))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kernelbot_site.settings")
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    execute_from_command_line(["manage.py", *sys.argv[1:]])


if __name__ == "__main__":
    main()
