from __future__ import annotations

import pytest

from kernelbot_site.local import gpu_types_here, read_or_make_secret, short_name


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("Tesla T4", "T4"),
        ("NVIDIA GeForce RTX 4090", "RTX4090"),
    ],
)
def test_gpus_are_called_as_competitions_call_them(name, short):
    assert short_name(name) == short


def test_a_gpu_of_this_machine_is_offered_when_ncu_is_here(tmp_path, monkeypatch):
    for tool, says in (("nvidia-smi", "NVIDIA H200, 9.0"), ("ncu", "")):
        (tmp_path / tool).write_text(f"#!/bin/sh\necho '{says}'\n")
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu_types_here()["H200"] == {"runner": "local", "sm": "90a", "ncu": True}

    (tmp_path / "ncu").unlink()
    assert gpu_types_here()["B200"]["runner"] == "recorded"


def test_the_secret_of_a_machine_is_made_once_and_for_its_owner_alone(tmp_path):
    path = tmp_path / "var/secret_key"

    secret = read_or_make_secret(path)

    assert read_or_make_secret(path) == secret
    assert path.stat().st_mode & 0o077 == 0
