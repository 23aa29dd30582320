"""kill -9 of the web process in mid-stream: the rows are the truth, and the next one goes on."""

from __future__ import annotations

import signal

import httpx
import pytest

from tests.server.popcorn import PATH, Stream, form


def test_a_killed_web_server_loses_no_profile_and_the_next_takes_it_up(make_service):
    service = make_service()
    service.plan(run_s=3)
    service.start_web()
    service.start_dispatcher()
    with service.client() as client, client.stream("POST", PATH, **form()) as response:
        stream = Stream(response)
        request_id = response.headers["X-Profile-Request"]
        stream.until(lambda _, data: data["job_status"] == "running")
        service.stop("web", signal.SIGKILL)
        with pytest.raises(httpx.TransportError):
            stream.last()

    service.start_web()
    path = f"/api/profile-requests/{request_id}/stream/"
    with service.client() as client, client.stream("GET", path) as response:
        name, result = Stream(response).last()

    assert name == "result"
    assert result["results"][0]["profile_metadata"]["request_id"] == request_id
    assert len(service.runner.calls("started")) == 1


def test_a_web_server_that_is_asked_to_stop_leaves_no_traceback(make_service):
    service = make_service()
    service.plan(run_s=600)
    service.start_web()
    with service.client() as client, client.stream("POST", PATH, **form()) as response:
        Stream(response).next()
        service.stop("web")
    service.start_web()

    with service.client() as client:
        facts = client.get(f"/api/profile-requests/{response.headers['X-Profile-Request']}/").json()

    assert facts["status"] == "queued"
    assert "Traceback" not in service.log()
