"""What an operator sees: the settings' checks, and `manage.py modal_status`."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from google.protobuf.message import Message
from modal_proto import api_pb2

from runners import checks
from runners.registry import GpuType
from tests.modal.conftest import deploy_function, make_tags


@pytest.mark.parametrize(
    ("name", "value", "check"),
    [
        ("MODAL_DEPLOYMENT", "", "runners.E010"),
        ("MODAL_APP_NAME", "", "runners.E010"),
        ("GPU_TYPES", {"MI300": GpuType(name="MI300", runner="modal")}, "runners.E011"),
        (
            "GPU_TYPES",
            {"L4": GpuType(name="L4", runner="modal", device_count=4)},
            "runners.E011",
        ),
        ("MODAL_TOKEN_ID", "", "runners.E012"),
        ("MODAL_TOKEN_SECRET", "", "runners.E012"),
        ("NCU_VERSIONS", {"modal": "2026.2.0"}, "runners.E013"),
    ],
    ids=lambda value: None if isinstance(value, dict) else str(value),
)
def test_what_contradicts_itself_is_named_by_the_checks(modal_settings, name, value, check):
    setattr(modal_settings, name, value)

    assert [message.id for message in modal_checks()] == [check]


def test_settings_that_agree_have_nothing_said_about_them(modal_settings):
    assert modal_checks() == []


def modal_checks():
    return [
        *checks.check_modal_deployment(),
        *checks.check_modal_gpus(),
        *checks.check_modal_token(),
        *checks.check_modal_ncu(),
    ]


def status() -> tuple[str, str]:
    """What it prints, and what it fails with."""
    out = StringIO()
    try:
        call_command("modal_status", stdout=out, no_color=True, skip_checks=True)
    except CommandError as error:
        return out.getvalue(), str(error)
    return out.getvalue(), ""


def test_it_shows_what_is_deployed(fake, modal_settings):
    for gpu in ("H100", "L4"):
        deploy_function(fake, gpu)

    shown, failure = status()

    assert failure == ""
    assert "deployment tests" in shown
    assert "schema 1" in shown
    assert (
        "B200: run_b200 on [('B200', 1)], restricted: True, single use: True, network: open, "
        "retries: 0, limit: 3120 s, waiting: 0" in shown
    )


def test_it_names_everything_that_is_wrong_and_fails(fake, modal_settings):
    deploy_function(fake, untrusted=False, single_use_containers=False, timeout_secs=60)
    deploy_function(fake, "H100", tags=make_tags(build="0123456789ab", max_containers="1"))

    shown, failure = status()

    assert failure == "2 of 3 GPU types can't be used"
    for words in (
        "may use Modal's own API",
        "containers are used again",
        "ended after 60 s",
        "Build 0123456789ab of the GPU side is deployed",
        "GPU_TYPES lets 4 jobs of H100 run at once",
        "L4: run_l4 is not deployed",
    ):
        assert words in shown


@pytest.mark.parametrize(
    ("rpc", "grpc_status", "kind"),
    [
        ("AppGetOrCreate", "NOT_FOUND", "modal_not_deployed"),
        ("AppGetOrCreate", "PERMISSION_DENIED", "modal_permission"),
        ("AppGetTags", "UNAVAILABLE", "modal_outage"),
    ],
)
def test_what_keeps_it_from_looking_is_said(fake, modal_settings, rpc, grpc_status, kind):
    fake.fault(rpc, grpc_status, times=-1)

    assert kind in status()[1]


def test_a_wrong_token_is_said(fake, modal_settings):
    modal_settings.MODAL_TOKEN_SECRET = "wrong"

    assert "modal_authentication" in status()[1]


def test_the_queue_depth_may_be_unknown(fake, modal_settings):
    for gpu in ("H100", "L4"):
        deploy_function(fake, gpu)
    fake.fault("FunctionGetCurrentStats", "PERMISSION_DENIED", times=-1)

    shown, failure = status()

    assert "waiting: unknown" in shown
    assert failure == ""


def test_the_client_is_the_version_that_was_studied():
    """The private names of modal_client.py are those of one version; see docs/modal.md."""
    import modal

    assert modal.__version__ == "1.6.4"
    for name in ("FunctionGetOutputsRequest", "BlobGetRequest", "FunctionCallFetchRequest"):
        assert issubclass(getattr(api_pb2, name), Message)


def test_a_process_that_only_knows_the_runner_by_name_has_no_modal():
    program = (
        "import os, django; django.setup()\n"
        "import runners.backends, runners.dispatcher.loop, runners.checks, sys\n"
        "sys.exit('modal' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"DJANGO_SETTINGS_MODULE": "kernelbot_site.settings", "SECRET_KEY": "x"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
