"""What a profile's stream ends with: the shape of the reference, and by name what we add to it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.popcorn import SUBMISSION, Stream
from tests.wire import assert_shape, example

OPTIONS = {"benchmark_index": "1", "ncu_kernel_name": "regex:rowsum", "ncu_launch_count": "2"}
OF_A_PROFILE = {"size": 1, "sha256": "text"}
OF_THE_METADATA = {
    "request_id": "text",
    "task_revision": "text",
    "task_commit": "text",
    "source_sha256": "text",
    "seed": None,
    "ncu_version_wanted": "text",
    "origin": "text",
    "verdict": "text",
    "about_durations": "text",
    "captures": None,
}


def expected(specs: dict[str, Any], options: dict[str, Any]) -> Any:
    """The example of the reference for another task, with our additions."""
    like = example("hosted-profile-result.json")
    (item,) = like["results"]
    (run,) = item["runs"].values()
    run["run"]["result"] = (
        None  # its counts are numbers here (section 20), so it is looked at apart
    )
    run["profile"] |= OF_A_PROFILE | {"download_url": "text"}
    item["runs"] = {f"profile.{index}": run for index in specs}
    item["profile_metadata"] |= OF_THE_METADATA | {
        "benchmark_specs": specs,
        "capture_options": options,
    }
    return like


@pytest.mark.parametrize(
    ("path", "form", "indices"),
    [("/profile/rowsum/B200", OPTIONS, "1"), ("/rowsum/B200/profile", {}, "012")],
)
def test_the_last_event_has_the_shape_of_the_reference_at_both_doors(service, path, form, indices):
    file = {"file": ("submission.py", SUBMISSION, "")}
    with (
        service.client() as client,
        client.stream("POST", path, files=file, data=form) as response,
    ):
        name, result = Stream(response).last()

    assert name == "result", result
    specs = {index: {"size": 1, "seed": 1} for index in indices}
    options = {each: int(value) if value.isdigit() else value for each, value in form.items()}
    assert_shape(result, expected(specs, options))
    for run in result["results"][0]["runs"].values():
        told = run["run"]["result"]
        assert told["benchmark-count"] == 1
        assert all(isinstance(told[each], str) for each in told.keys() - {"benchmark-count"})
        assert {"check", "benchmark.0.spec", "benchmark.0.report"} <= told.keys()
