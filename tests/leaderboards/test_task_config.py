from __future__ import annotations

import pytest

from leaderboards.task_config import build_job_config
from leaderboards.task_definition import SUBMISSION_MARK
from runners.gpu.contract import (
    CaptureOptions,
    JobConfig,
    Mode,
    capture_options,
    config_sha256,
    read_config,
)
from runners.gpu.wire import dumps
from runners.registry import GpuType

B200 = GpuType(name="B200", runner="fake", sm="100", ncu=True)
# shared/design/examples/config-sha256-vector.json
VECTOR_SHA256 = "4c3febeb71457eeef69447db09472952bec095d40d7fe5a6e7de695d58ae4ad8"
SUBMISSION = "def custom_kernel(data):\n    return data\n"


@pytest.fixture
def build(make_leaderboard):
    def call(*, gpu: GpuType = B200, **task: object) -> JobConfig:
        return build_job_config(
            make_leaderboard(task=task).current_revision,
            SUBMISSION,
            job_id="j",
            attempt=2,
            mode=Mode.PROFILE,
            gpu=gpu,
            selected=(1,),
            seed=5,
            capture=CaptureOptions(ncu_kernel_name="regex:rowsum", ncu_launch_count=2),
        )

    return call


def test_the_fingerprint_of_an_equal_task_is_the_test_vector(build):
    config = build(
        tests=({"rows": 64, "cols": 48, "seed": 101},),
        benchmarks=(
            {"rows": 1024, "cols": 512, "seed": 7},
            {"rows": 4096, "cols": 2048, "seed": 8},
        ),
    )
    assert config.capture is not None

    assert config_sha256(config, capture_options(config.capture, 1)) == VECTOR_SHA256


def test_a_python_task_has_every_file_as_a_source_with_the_submission_in_its_place(build):
    config = build()

    assert config.sources == {"submission.py": SUBMISSION, "eval.py": "print('evaluator')\n"}
    assert (config.main, config.headers, config.arch) == ("eval.py", None, "100")


def test_a_cuda_task_compiles_its_sources_and_the_rest_are_headers(build):
    config = build(
        lang="cu",
        main=None,
        files={
            "eval.cu": "int main() {}\n",
            "submission.cu": SUBMISSION_MARK,
            "reference.cuh": "#pragma once\n",
        },
        sources=("eval.cu", "submission.cu"),
        include_dirs=("/opt/include",),
        defines={"TILE": "16"},
        compile_flags=("-lineinfo",),
    )

    assert config.sources == {"eval.cu": "int main() {}\n", "submission.cu": SUBMISSION}
    assert config.headers == {"reference.cuh": "#pragma once\n"}
    assert config.main is None
    assert (config.include_dirs, config.defines) == (("/opt/include",), {"TILE": "16"})
    assert config.compile_flags == ("-lineinfo",)


def test_the_time_limits_are_those_of_the_service_and_of_the_task(build, settings):
    settings.CAPTURE_LIMIT_S, settings.COMPILE_LIMIT_S = 44, 33
    limits = build(test_timeout=1.5, benchmark_timeout=2, ranked_timeout=3).limits

    assert (limits.test_s, limits.benchmark_s, limits.ranked_s) == (1.5, 2, 3)
    assert (limits.capture_s, limits.compile_s) == (44, 33)


def test_where_there_is_no_gpu_there_is_no_architecture(build):
    assert build(gpu=GpuType(name="CPU", runner="local")).arch is None


def test_a_config_survives_the_way_to_the_gpu_side(build):
    config = build()

    assert read_config(dumps(config)) == config
