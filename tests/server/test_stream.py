"""A profile from the upload to the last event, over HTTP, as popcorn-cli sees it."""

from __future__ import annotations

from tests.server.popcorn import PATH, Stream, archives, form, names_in


def test_a_profile_streams_status_events_and_then_one_result(service):
    with service.client() as client, client.stream("POST", PATH, **form()) as response:
        assert response.status_code == 200, response.read()
        stream = Stream(response)
        first = stream.next()
        name, result = stream.last()

    assert first[0] == "status"
    assert first[1]["status"] == "processing"
    assert first[1]["queue_position"] == 1
    assert name == "result", result
    assert result["status"] == "success"
    assert sorted(result["results"][0]["runs"]) == ["profile.0", "profile.1", "profile.2"]
    assert names_in(archives(result)["profile.1"]) == [
        "ncu-details.csv",
        "ncu-details.txt",
        "profile.ncu-rep",
    ]
