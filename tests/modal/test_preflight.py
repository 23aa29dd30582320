"""What is deployed is looked at before a stranger's code is sent there."""

from __future__ import annotations

import pytest
from modal_proto import api_pb2

from runners.backends.modal_runner import ModalRunner
from tests.modal.conftest import deploy_function, make_tags

GPU = api_pb2.GPUConfig


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"untrusted": False}, "may use Modal's own API"),
        ({"single_use_containers": False}, "containers are used again"),
        ({"secret_ids": ["st-1"]}, "secrets"),
        (
            {"volume_mounts": [api_pb2.VolumeMount(volume_id="vo-1", mount_path="/x")]},
            "volumes",
        ),
        ({"block_network": True}, "network is closed"),
        ({"retry_policy": api_pb2.FunctionRetryPolicy(retries=3)}, "runs failed calls again"),
    ],
)
def test_an_unsafe_function_gets_no_job(modal, changes, words):
    deploy_function(modal.fake, **changes)

    fault = modal.fault_of_start()

    assert (fault.kind, fault.retryable) == ("modal_unsafe", True)
    assert words in str(fault)
    assert "fault of the service" in str(fault)
    assert modal.fake.calls() == []


def test_an_open_network_is_refused_where_it_must_be_closed(modal, modal_settings):
    modal_settings.MODAL_BLOCK_NETWORK = True

    assert "network is open" in str(modal.fault_of_start())


@pytest.mark.parametrize(
    "gpu",
    [GPU(), GPU(gpu_type="H100", count=1), GPU(gpu_type="B200", count=2)],
    ids=["none", "another", "two"],
)
def test_another_gpu_gets_no_job(modal, gpu):
    deploy_function(modal.fake, resources=api_pb2.Resources(gpu_config=gpu))

    assert modal.fault_of_start().kind == "modal_wrong_gpu"


def test_a_plain_h100_is_not_the_h100_that_was_asked_for(modal):
    plain = api_pb2.Resources(gpu_config=GPU(gpu_type="H100", count=1))
    deploy_function(modal.fake, "H100", resources=plain)
    assert modal.fault_of_start("H100").kind == "modal_wrong_gpu"

    deploy_function(modal.fake, "H100")
    assert modal.start("H100")


@pytest.mark.parametrize(
    ("tags", "kind", "words"),
    [
        (make_tags(deployment="staging"), "modal_shared_app", "staging"),
        ({}, "modal_shared_app", "nobody"),
        (make_tags(schema="2"), "modal_wrong_version", "speaks schema 2"),
        (make_tags(ncu="2026.2.0"), "modal_wrong_version", "NCU 2026.2.0 is deployed"),
    ],
)
def test_another_deployment_or_version_is_said_clearly(modal, tags, kind, words):
    """FR-24: after a deploy of one half, the other half does not fail oddly."""
    deploy_function(modal.fake, tags=tags)

    fault = modal.fault_of_start()

    assert (fault.kind, fault.retryable) == (kind, True)
    assert words in str(fault)


def test_another_build_of_the_same_schema_is_used(modal):
    deploy_function(modal.fake, tags=make_tags(build="0123456789ab"))

    assert modal.start()


def test_a_limit_of_the_provider_below_our_own_gets_no_job(modal):
    """FR-24."""
    deploy_function(modal.fake, timeout_secs=3000)

    assert modal.fault_of_start().kind == "modal_time_limit"


def test_a_gpu_type_without_a_function_is_not_deployed(modal):
    assert modal.fault_of_start("H100").kind == "modal_not_deployed"
    assert modal.fault_of_start("MI300").kind == "modal_not_deployed"


def test_the_preflight_is_not_repeated_for_each_job_but_for_a_new_process(modal):
    for _ in range(3):
        modal.start()
    assert modal.fake.state()["counts"]["FunctionGet"] == 1

    deploy_function(modal.fake, untrusted=False)
    old, modal.runner = modal.runner, ModalRunner()
    assert modal.fault_of_start().kind == "modal_unsafe"
    modal.wait(old.client.close())
