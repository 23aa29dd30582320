"""What an operator looks at: readiness, metrics, and lines of the log."""

from __future__ import annotations

import json
import signal
from uuid import UUID

import pytest
from prometheus_client.parser import text_string_to_metric_families

from runners.backends.fake_plan import PlannedFault
from runners.gpu.contract import Failure, FailureKind
from tests.server.popcorn import PATH, Stream, form
from tests.server.service import wait_for

TOKEN = "MARK-SECRET-metrics-token"


def scrape(service, token=TOKEN):
    """Values by name and the labels' values, in the alphabetical order of the labels' names."""
    with service.client(cli_id=None) as client:
        answer = client.get("/metrics", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, answer.text
    return {
        (sample.name.removeprefix("kernelbot_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def said_of(answer, lines):
    """All that the log says of the request with this answer."""
    wanted = answer.headers["X-Request-Id"]
    of_request = [line for line in lines if line.get("request_id") == wanted]
    return "".join(line["message"] + line.get("error", "") for line in of_request)


def ready(service):
    with service.client(cli_id=None) as client:
        return client.get("/ready")


@pytest.fixture
def operated(make_service):
    made = make_service(
        METRICS_TOKEN=TOKEN, LOG_FORMAT="json", ADMIN_TOKEN="MARK-SECRET-admin-token"
    )
    made.start_web()
    return made


def test_readiness_names_a_dispatcher_that_is_missing_and_a_gpu_that_is_paused(operated):
    alone = ready(operated)
    operated.start_dispatcher()
    wait_for(lambda: ready(operated).json()["status"] == "ok")
    operated.execute(
        "INSERT INTO runners_gpupause (gpu, kind, reason, paused_at, paused_by, resumed_by) "
        "VALUES ('B200', 'ncu_missing', 'a reason for operators', '2026-01-01', 'olga', '')"
    )
    paused = ready(operated)
    operated.stop("dispatcher", signal.SIGKILL)

    assert alone.status_code == 200  # what is accepted waits
    assert alone.json()["checks"]["dispatcher"] == "no dispatcher runs"
    assert paused.json()["status"] == "degraded"
    assert paused.json()["checks"]["runners"]["B200"] == "paused"
    assert "a reason for operators" not in paused.text
    wait_for(lambda: "no dispatcher was alive" in ready(operated).json()["checks"]["dispatcher"])


def test_readiness_fails_with_a_storage_that_does_not_answer(make_service):
    broken = make_service(
        REPORTS_STORAGE_URL="s3://reports",
        REPORTS_S3_ENDPOINT="http://127.0.0.1:9",
        AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="MARK-SECRET-of-the-storage",
        AWS_DEFAULT_REGION="us-east-1",
    )
    broken.start_web()

    answer = ready(broken)

    assert answer.status_code == 503
    assert "storage" in answer.json()["detail"]
    assert answer.json()["checks"]["database"] == "ok"
    assert "MARK-SECRET" not in answer.text + broken.log()


def test_metrics_are_for_whoever_has_the_token(operated, service):
    with operated.client(cli_id=None) as client, service.client(cli_id=None) as unset:
        answers = [
            client.get("/metrics"),
            client.get("/metrics", headers={"Authorization": "Bearer wrong"}),
            unset.get("/metrics", headers={"Authorization": "Bearer"}),
        ]

    assert [answer.status_code for answer in answers] == [404] * 3


def test_metrics_tell_what_waits_runs_failed_and_is_streamed(operated):
    failed = Failure(kind=FailureKind.TIME_LIMIT, message="too long")
    operated.plan(failures={"profile.0": failed})
    with operated.client() as client, client.stream("POST", PATH, **form()) as response:
        stream = Stream(response)
        stream.next()
        waiting = scrape(operated)
        operated.start_dispatcher()
        stream.last()
    operated.plan(start_faults=(PlannedFault(kind="provider_down"),))
    with operated.client() as client, client.stream("POST", PATH, **form()) as response:
        assert Stream(response).last()[0] == "error"
    done = wait_for(lambda: (now := scrape(operated))["streams_open",] == 0 and now)

    assert waiting["queue_depth", "B200"] == waiting["jobs_active", "B200", "queued"] == 1
    assert waiting["queue_oldest_seconds",] > 0
    assert waiting["streams_open",] == 1
    assert done["queue_depth", "B200"] == 0
    assert done["jobs_finished_last_hour", "", "B200", "succeeded"] == 1
    assert done["jobs_finished_last_hour", "provider_down", "B200", "failed"] == 1
    assert done["capture_failures_last_hour", failed.kind.fault, failed.kind] == 1
    assert done["phase_longest_seconds", "B200", "running"] > 0
    assert 0 <= done["dispatcher_heartbeat_age_seconds",] < 60


def test_a_web_process_that_was_killed_streams_nothing_any_more(operated):
    with operated.client() as client, client.stream("POST", PATH, **form()) as response:
        Stream(response).next()
        assert scrape(operated)["streams_open",] == 1
        operated.stop("web", signal.SIGKILL)
    operated.start_web()

    assert scrape(operated)["streams_open",] == 0
    assert list((operated.folder / "open-streams").iterdir()) == []


def test_each_line_of_the_log_is_json_with_its_request_or_job_and_no_secret(operated):
    """FR-37: not in what failed either, whoever sent or holds it."""
    operated.plan(
        start_faults=(PlannedFault(kind="provider_down", message=f"refused: Bearer {TOKEN}"),)
    )
    operated.start_dispatcher()
    code = b"def custom_kernel(data):\n    return 'MARK-SECRET-source'\n"
    link = f"/profile/{'a' * 32}.1900000000.{'MARK-SECRET'.ljust(43, '_')}"
    bearer = {"Authorization": "Bearer MARK-SECRET-admin-token"}
    with operated.client() as client:
        with client.stream("POST", PATH, **form(code)) as response:
            job_id = operated.rows("SELECT id FROM runners_job")[0]["id"]
            assert Stream(response).last()[0] == "error"
        missing = client.get("/nothing/here?code=MARK-SECRET-code")
        client.get(link)
        client.get("/admin/stats?token=MARK-SECRET-in-query", headers=bearer)
        client.get("/profile/x", headers={"X-Popcorn-Cli-Id": "MARK-SECRET-cli-id"})
        operated.execute("ALTER TABLE leaderboards_clientid RENAME TO gone")
        broken = client.get("/user/submissions", headers={"X-Popcorn-Cli-Id": "MARK-SECRET-id"})

    web = [json.loads(line) for line in operated.log().splitlines()]
    dispatcher = [json.loads(line) for line in operated.log("dispatcher").splitlines()]
    assert broken.status_code >= 500
    assert "/nothing/here" in said_of(missing, web)
    assert "clientid" in said_of(broken, web)
    assert UUID(job_id) in {UUID(line["job_id"]) for line in dispatcher if "job_id" in line}
    assert "MARK-SECRET" not in operated.log() + operated.log("dispatcher")
    assert "[hidden]" in operated.log("dispatcher")
