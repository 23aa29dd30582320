"""What can be done with a request after it was sent, and by whom."""

from __future__ import annotations

import hashlib
import json
import re
import uuid

import pytest

from tests.server.popcorn import PATH, form, names_in
from tests.server.service import wait_for


@pytest.fixture
def finished(service):
    """The facts of a finished profile of alice, with one capture."""
    with service.client() as client:
        sent = client.post(
            PATH, headers={"Prefer": "respond-async"}, **form(benchmark_index="1")
        ).json()
    return service.wait_until_final(sent["id"])


def test_the_facts_of_a_request_are_strict_json_and_complete(service, finished):
    capture = finished["captures"][0]

    assert finished["status"] == "succeeded"
    assert finished["leaderboard_name"] == "rowsum"
    assert finished["queue_position"] is None
    assert finished["benchmark_specs"] == {"1": {"size": 512, "seed": 3}}
    assert finished["error"] is None
    assert capture["spec"] == "size: 512; seed: 3"
    assert capture["ncu_version"].startswith("2025.2.1")
    assert capture["archive"]["size"] == service.archive.stat().st_size
    assert sorted(capture["files"]) == ["details.csv", "details.txt", "report"]
    json.dumps(finished, allow_nan=False)


def test_the_archive_is_downloaded_as_it_was_stored(service, finished):
    """FR-20, FR-21: a name that no other capture has, and bytes with the recorded sha256."""
    told = finished["captures"][0]["archive"]

    with service.client() as client:
        answer = client.get(told["url"])
        again = client.get(told["url"], headers={"If-None-Match": answer.headers["ETag"]})
        head = client.head(told["url"])

    assert hashlib.sha256(answer.content).hexdigest() == told["sha256"]
    assert answer.headers["ETag"] == f'"{told["sha256"]}"'
    assert int(answer.headers["Content-Length"]) == told["size"] == len(answer.content)
    assert f'"rowsum-B200-profile.1-{finished["id"]}.zip"' in answer.headers["Content-Disposition"]
    assert again.status_code == 304
    assert head.headers["Content-Length"] == str(told["size"])
    assert head.content == b""


def test_files_inside_the_archive_are_downloaded_one_by_one(service, finished):
    urls = finished["captures"][0]["files"]

    with service.client() as client:
        answers = {name: client.get(url) for name, url in urls.items()}
        unknown = client.get(urls["report"].replace("/report", "/secrets"))

    assert answers["report"].content[:4] == b"NVR\0"
    assert answers["details.csv"].headers["Content-Type"].startswith("text/csv")
    names = [
        re.search('filename="(.*)"', answer.headers["Content-Disposition"])[1]
        for answer in answers.values()
    ]
    assert len(set(names)) == 3
    assert all(finished["id"] in name for name in names)
    assert unknown.status_code == 404


def test_a_stranger_is_told_that_there_is_nothing(service, finished):
    paths = [finished["urls"]["self"], finished["urls"]["stream"]]
    paths += [finished["captures"][0]["archive"]["url"], *finished["captures"][0]["files"].values()]

    with service.client("bob-cli-id") as client:
        answers = [client.get(path) for path in paths]
        answers += [client.post(finished["urls"][name]) for name in ("cancel", "rerun")]
        answers.append(client.get(f"/api/profile-requests/{uuid.uuid4()}/"))

    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.json()["detail"] for answer in answers}) == 1


def test_an_operator_with_a_session_may_read_everything_and_change_nothing(service, finished):
    with service.client(cli_id=None, follow_redirects=True) as client:
        page = client.get("/operators/login/")
        token = re.search('name="csrfmiddlewaretoken" value="(.*?)"', page.text)[1]
        client.post(
            "/operators/login/",
            data={"username": "olga", "password": "olga-password", "csrfmiddlewaretoken": token},
            headers={"Referer": f"{service.base_url}/operators/login/"},
        )
        facts = client.get(finished["urls"]["self"])
        archive = client.get(finished["captures"][0]["archive"]["url"])
        cancelled = client.post(finished["urls"]["cancel"])

    assert facts.json()["id"] == finished["id"]
    assert names_in(archive.content)
    assert cancelled.status_code == 400  # no CLI id


def test_the_list_is_ones_own_newest_first_in_bounded_pages(service, finished):
    with service.client() as client:
        for _ in range(3):
            client.post(PATH, headers={"Prefer": "respond-async"}, **form())
        refused = client.post(PATH, **form(content=b""))
        page = client.get("/api/profile-requests/?limit=2").json()
        next_page = client.get(page["next"]).json()
        huge = client.get("/api/profile-requests/?limit=100000").json()
    with service.client("bob-cli-id") as client:
        bobs = client.get("/api/profile-requests/").json()

    assert refused.status_code == 400
    times = [row["created_at"] for row in page["results"] + next_page["results"]]
    assert times == sorted(times, reverse=True)
    assert len(page["results"]) == 2
    assert len(huge["results"]) <= 100
    assert bobs["results"] == []


def test_a_rerun_is_a_new_request_linked_to_the_first(service, finished):
    with service.client() as client:
        answer = client.post(finished["urls"]["rerun"])
    again = service.wait_until_final(answer.json()["id"])

    assert answer.status_code == 202
    assert again["rerun_of"] == finished["id"]
    assert again["config_sha256"] == finished["config_sha256"]
    assert again["status"] == "succeeded"


def test_a_banned_person_cannot_measure_again(service, finished):
    service.execute(
        "UPDATE leaderboards_popcornuser SET banned_at = ? WHERE username = 'alice'",
        "2026-01-01 00:00:00",
    )
    try:
        with service.client() as client:
            answer = client.post(finished["urls"]["rerun"])
    finally:
        service.execute(
            "UPDATE leaderboards_popcornuser SET banned_at = NULL WHERE username = 'alice'"
        )

    assert answer.status_code == 403


def test_a_lost_file_is_gone_for_that_download_alone(service, finished):
    job = service.rows(
        "SELECT job_id FROM profiling_profilerequest WHERE id = ?", finished["id"].replace("-", "")
    )[0]["job_id"]
    for stored in (service.folder / "reports" / str(uuid.UUID(job))).rglob("*.zip"):
        stored.unlink()

    with service.client() as client:
        archive = client.get(finished["captures"][0]["archive"]["url"])
        report = client.get(finished["captures"][0]["files"]["report"])
        facts = client.get(finished["urls"]["self"])

    assert archive.status_code == report.status_code == 410
    assert isinstance(archive.json()["detail"], str)
    assert facts.status_code == 200


def test_a_storage_that_does_not_answer_is_503_for_that_download(service, finished):
    """FR-30: a folder in the file's place is what a local storage has for an outage."""
    job = service.rows(
        "SELECT job_id FROM profiling_profilerequest WHERE id = ?", finished["id"].replace("-", "")
    )[0]["job_id"]
    for stored in list((service.folder / "reports" / str(uuid.UUID(job))).rglob("*.zip")):
        stored.unlink()
        stored.mkdir()

    with service.client() as client:
        answer = client.get(finished["captures"][0]["archive"]["url"])

    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0


def test_an_id_that_was_used_is_noted_once_a_minute_at_most(service):
    used = "SELECT last_used_at FROM leaderboards_clientid WHERE digest = ?"
    digest = hashlib.sha256(b"bob-cli-id").hexdigest()

    with service.client("bob-cli-id") as client:
        client.get("/api/profile-requests/")
        first = wait_for(lambda: service.rows(used, digest)[0]["last_used_at"])
        client.get("/api/profile-requests/")

    assert service.rows(used, digest)[0]["last_used_at"] == first
