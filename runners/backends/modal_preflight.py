"""Is what is deployed at Modal what this service may send a stranger's code to?"""

from __future__ import annotations

from dataclasses import dataclass

import modal.types
from django.conf import settings

from runners.exceptions import RunnerFault
from runners.gpu.build import build_id
from runners.gpu.contract import SCHEMA
from runners.gpu.deployment import MODAL_GPUS, TIMEOUT_MARGIN_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`stops`: nothing is started while it is so. `kind` is the RunnerFault's."""

    kind: str
    message: str
    stops: bool = True


def find_problems(gpu: str, info: modal.types.FunctionInfo, tags: dict[str, str]) -> list[Finding]:
    """All that is wrong with a function as it is deployed, worst first."""
    return [*_unsafe(gpu, info), *_of_another(tags), *_versions(tags), *_limits(gpu, info, tags)]


def _unsafe(gpu: str, info: modal.types.FunctionInfo) -> list[Finding]:
    wrong = {
        "it may use Modal's own API": not info.restrict_modal_access,
        "its containers are used again": not info.single_use_containers,
        "it is given secrets": bool(info.secrets),
        "it is given volumes": bool(info.volumes or info.cloud_bucket_mounts),
        "its network is open, and MODAL_BLOCK_NETWORK is set": (
            settings.MODAL_BLOCK_NETWORK and not info.block_network
        ),
        "its network is closed, and MODAL_BLOCK_NETWORK is not set": (
            info.block_network and not settings.MODAL_BLOCK_NETWORK
        ),
        "it runs failed calls again": bool(info.max_retries),
    }
    found = [
        Finding(kind="modal_unsafe", message=f"The deployed function is not safe: {why}.")
        for why, is_so in wrong.items()
        if is_so
    ]
    expected = [(MODAL_GPUS[gpu], 1)]
    if list(info.gpus) != expected:
        found.append(
            Finding(
                kind="modal_wrong_gpu",
                message=f"The deployed function has {info.gpus}, {expected} is expected.",
            )
        )
    return found


def _of_another(tags: dict[str, str]) -> list[Finding]:
    """Two deployments that share an app would take each other's runs for orphans."""
    if tags.get("deployment") == settings.MODAL_DEPLOYMENT:
        return []
    return [
        Finding(
            kind="modal_shared_app",
            message=f"The app {settings.MODAL_APP_NAME!r} was deployed for "
            f"{tags.get('deployment', 'nobody')!r}, this service is "
            f"{settings.MODAL_DEPLOYMENT!r} (MODAL_DEPLOYMENT). Each needs an app of its own.",
        )
    ]


def _versions(tags: dict[str, str]) -> list[Finding]:
    found = []
    if tags.get("schema") != str(SCHEMA):
        found.append(
            Finding(
                kind="modal_wrong_version",
                message=f"The deployed GPU side speaks schema {tags.get('schema', 'unknown')}, "
                f"this service speaks {SCHEMA}: deploy the GPU side of this release.",
            )
        )
    wanted = settings.NCU_VERSIONS.get("modal")
    if wanted and tags.get("ncu") != wanted:
        found.append(
            Finding(
                kind="modal_wrong_version",
                message=f"NCU {tags.get('ncu', 'unknown')} is deployed, {wanted} is wanted "
                "(NCU_VERSIONS).",
            )
        )
    if not found and tags.get("build") != build_id():
        found.append(
            Finding(
                kind="modal_other_build",
                message=f"Build {tags.get('build', 'unknown')} of the GPU side is deployed, this "
                f"service holds {build_id()}. They speak the same schema.",
                stops=False,
            )
        )
    return found


def _limits(gpu: str, info: modal.types.FunctionInfo, tags: dict[str, str]) -> list[Finding]:
    found = []
    needed = settings.JOB_LIMIT_S + TIMEOUT_MARGIN_S
    if info.timeout < needed:
        found.append(
            Finding(
                kind="modal_time_limit",
                message=f"The deployed function is ended after {info.timeout} s, before a job of "
                f"JOB_LIMIT_S that needs {needed:g} s.",
            )
        )
    containers, in_flight = tags.get("max-containers", ""), settings.GPU_TYPES[gpu].max_in_flight
    if not containers.isdecimal() or int(containers) < in_flight:
        found.append(
            Finding(
                kind="modal_too_few_containers",
                message=f"GPU_TYPES lets {in_flight} jobs of {gpu} run at once, the deployed "
                f"function {containers or 'does not say how many'}: jobs would wait at Modal and "
                "be shown as running.",
                stops=False,
            )
        )
    return found


def require_safe(gpu: str, info: modal.types.FunctionInfo, tags: dict[str, str]) -> None:
    """Raises RunnerFault with the first thing that stops. A new deployment may mend it."""
    for problem in find_problems(gpu, info, tags):
        if problem.stops:
            raise RunnerFault(
                f"{problem.message} This is a fault of the service, not of your submission.",
                kind=problem.kind,
                retryable=True,
            )
