"""System checks of this app: what can be wrong together in the configuration of runners."""

from __future__ import annotations

import os
import pwd
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from runners.gpu.deployment import MODAL_GPUS, NCU_VERSION
from runners.registry import RUNNERS, GpuType

TAG = "runners"
# The CLI gives a stream up after an hour, queueing included.
CLIENT_LIMIT_S = 3600
# What a provider's own limit leaves after the job's: the envelope is still written and sent.
PROVIDER_MARGIN_S = 120


@register(TAG)
def check_time_limits(**_: Any) -> list[CheckMessage]:
    """Whatever lies within must end first, so that partial results come from our own handling."""
    one_capture = settings.COMPILE_LIMIT_S + settings.CAPTURE_LIMIT_S + 2 * settings.EXPORT_LIMIT_S
    return [
        *_at_most("runners.E001", one_capture, "One compile, capture and two exports",
                  settings.JOB_LIMIT_S, "JOB_LIMIT_S"),
        *_at_most("runners.E002", settings.JOB_LIMIT_S + PROVIDER_MARGIN_S,
                  f"JOB_LIMIT_S and {PROVIDER_MARGIN_S} s", settings.RUN_WALL_S, "RUN_WALL_S"),
        *_at_most("runners.E003", settings.STREAM_LIMIT_S + 1, "STREAM_LIMIT_S and 1 s",
                  CLIENT_LIMIT_S, "the hour after which the CLI gives up"),
        *_at_most("runners.E004", 3 * settings.POLL_EVERY_S, "Three times POLL_EVERY_S",
                  settings.LEASE_S, "LEASE_S"),
    ]  # fmt: skip


def _at_most(
    check: str, inner: float, inner_name: str, outer: float, outer_name: str
) -> list[CheckMessage]:
    if inner <= outer:
        return []
    return [
        Error(
            f"{inner_name} ({inner:g} s) must fit into {outer_name} ({outer:g} s)",
            hint="See docs/architecture.md, Time limits.",
            id=check,
        )
    ]


@register(TAG)
def check_fake_runner(**_: Any) -> list[CheckMessage]:
    """Made-up results must not be taken for measurements."""
    faked = [gpu.name for gpu in settings.GPU_TYPES.values() if gpu.runner == "fake"]
    if not faked or settings.DEBUG:
        return []
    return [
        Error(
            f"GPU_TYPES: {', '.join(faked)} would be served by the fake runner of the tests",
            hint="Name another runner, or set DEBUG=1 on a machine of your own.",
            id="runners.E005",
        )
    ]


@register(TAG)
def check_recorded_archive(**_: Any) -> list[CheckMessage]:
    recorded = [gpu.name for gpu in settings.GPU_TYPES.values() if gpu.runner == "recorded"]
    if not recorded or settings.RECORDED_ARCHIVE.is_file():
        return []
    return [
        Error(
            f"RECORDED_ARCHIVE, which {', '.join(recorded)} would replay, is no file: "
            f"{settings.RECORDED_ARCHIVE}",
            hint="Point it at the archive of a capture.",
            id="runners.E006",
        )
    ]


@register(TAG)
def check_ncu_versions(**_: Any) -> list[CheckMessage]:
    unknown = sorted(set(settings.NCU_VERSIONS) - set(RUNNERS))
    if not unknown:
        return []
    return [
        Error(
            f"NCU_VERSIONS names runners that do not exist: {', '.join(unknown)}",
            hint=f"Known are {', '.join(RUNNERS)}.",
            id="runners.E007",
        )
    ]


@register(TAG)
def check_local_run_user(**_: Any) -> list[CheckMessage]:
    """As root, a submission must run as somebody else."""
    local = any(gpu.runner == "local" for gpu in settings.GPU_TYPES.values())
    if not local or os.geteuid() != 0:
        return []
    try:
        is_other = pwd.getpwnam(settings.LOCAL_RUN_USER).pw_uid != 0
    except KeyError:
        is_other = False
    if is_other:
        return []
    return [
        Error(
            f"LOCAL_RUN_USER is no user that submissions can run as: {settings.LOCAL_RUN_USER!r}",
            hint="Name an existing user without privileges.",
            id="runners.E008",
        )
    ]


@register(TAG)
def check_counts(**_: Any) -> list[CheckMessage]:
    names = [name for name in ("IN_FLIGHT_PER_USER", "MAX_ATTEMPTS") if getattr(settings, name) < 1]
    return [
        Error(f"{name} must be 1 or more", hint="Else no job is ever started.", id="runners.E009")
        for name in names
    ]


# What Modal needs. The token is only asked for where half of it is: web processes run these checks
# too, and must not have it. `manage.py modal_status` compares with what is really deployed.


def _on_modal() -> list[GpuType]:
    return [gpu for gpu in settings.GPU_TYPES.values() if gpu.runner == "modal"]


@register(TAG)
def check_modal_deployment(**_: Any) -> list[CheckMessage]:
    if not _on_modal() or (settings.MODAL_DEPLOYMENT and settings.MODAL_APP_NAME):
        return []
    return [
        Error(
            "GPU_TYPES uses modal, but MODAL_DEPLOYMENT or MODAL_APP_NAME is empty",
            hint="Name this deployment as it was named at `modal deploy`; each has its own app.",
            id="runners.E010",
        )
    ]


@register(TAG)
def check_modal_gpus(**_: Any) -> list[CheckMessage]:
    """A GPU type that runners/modal_app.py has no function for, or one of several GPUs."""
    wrong = [gpu.name for gpu in _on_modal() if gpu.name not in MODAL_GPUS or gpu.device_count > 1]
    if not wrong:
        return []
    return [
        Error(
            f"GPU_TYPES: there is no function at Modal for {', '.join(wrong)}",
            hint=f"One GPU each of {', '.join(MODAL_GPUS)}.",
            id="runners.E011",
        )
    ]


@register(TAG)
def check_modal_token(**_: Any) -> list[CheckMessage]:
    if bool(settings.MODAL_TOKEN_ID) == bool(settings.MODAL_TOKEN_SECRET):
        return []
    return [
        Error(
            "only one of MODAL_TOKEN_ID and MODAL_TOKEN_SECRET is set",
            hint="The dispatcher needs both; web processes need neither.",
            id="runners.E012",
        )
    ]


@register(TAG)
def check_modal_ncu(**_: Any) -> list[CheckMessage]:
    wanted = settings.NCU_VERSIONS.get("modal")
    if not _on_modal() or wanted in (None, NCU_VERSION):
        return []
    return [
        Error(
            f"NCU_VERSIONS wants NCU {wanted} at Modal, runners/modal_app.py installs "
            f"{NCU_VERSION}",
            hint="Change both together: docs/modal.md, Upgrades.",
            id="runners.E013",
        )
    ]
