from __future__ import annotations

import pytest

from runners.backends.fake_plan import Plan, write_envelope
from runners.gpu.contract import Failure, FailureKind
from runners.models import GpuPause, Job
from runners.pauses import resume_gpu
from runners.states import JobStatus

S = JobStatus


@pytest.mark.parametrize("content", [b"", b"\x00\x00\x00\x05hello", b"\x80\x04cos\nsystem\n."])
def test_bytes_that_are_no_envelope_are_our_failure(
    dispatcher, add_job, fake, tmp_path, content, caplog
):
    """FR-25: malformed bytes are an infrastructure failure; the first bytes are in the log only."""
    (tmp_path / "bad").write_bytes(content)
    fake.plan(Plan(envelope=str(tmp_path / "bad")))
    job = add_job()

    dispatcher.until(job, S.FAILED)

    assert job.failure_kind == "bad_envelope"
    assert "not the submission's fault" in job.failure_message
    assert repr(content) in caplog.text
    assert repr(content) not in job.failure_message


def test_the_result_of_another_job_is_refused(dispatcher, add_job, fake, tmp_path):
    first = dispatcher.until(add_job(), S.RUNNING)
    [call] = fake.calls("started")
    write_envelope(tmp_path / "result", fake.config_of(call["external_id"]), Plan())
    dispatcher.until(first, S.SUCCEEDED)
    fake.plan(Plan(envelope=str(tmp_path / "result")))

    job = dispatcher.until(add_job(), S.FAILED)

    assert job.failure_kind == "bad_envelope"
    assert not job.artifacts.exists()


def test_a_result_that_changes_after_it_was_stored_is_refused(
    dispatcher, add_job, fake, handler, monkeypatch
):
    """FR-32: what was stored stays as it is."""
    with monkeypatch.context() as patched:
        patched.setattr(handler, "keep_results", None)
        job = dispatcher.until(add_job(), S.COLLECTING)
        dispatcher.step()
    stored = [artifact.sha256 for artifact in job.artifacts.all()]
    run = fake.root / "runs" / job.external_id
    fake.plan(Plan(archive=str(run / "config.json")))
    (run / "result.envelope").unlink()

    dispatcher.until(job, S.FAILED)

    assert job.failure_kind == "result_changed"
    assert [artifact.sha256 for artifact in job.artifacts.all()] == stored


def test_a_result_that_is_too_large_is_not_read(dispatcher, add_job, fake, settings):
    settings.ENVELOPE_MAX_BYTES = 100

    job = dispatcher.until(add_job(), S.FAILED)

    assert job.failure_kind == "bad_envelope"


def test_machines_without_counters_pause_their_gpu_until_somebody_resumes_it(
    dispatcher, add_job, fake
):
    """FR-09: further jobs are not burnt one after the other."""
    failure = Failure(kind=FailureKind.COUNTERS_NOT_PERMITTED, message="The host forbids it.")
    fake.plan(Plan(failure=failure))
    job = dispatcher.until(add_job(), S.FAILED)
    assert (job.failure_kind, job.attempt) == ("counters_not_permitted", 1)
    pause = GpuPause.objects.get()
    assert (pause.gpu, pause.reason) == ("B200", "The host forbids it.")
    fake.plan(Plan())
    waiting, elsewhere = add_job(), add_job(gpu="H100")
    dispatcher.until(elsewhere, S.SUCCEEDED)
    assert Job.objects.get(pk=waiting.pk).status == S.QUEUED

    resume_gpu("B200", actor_label="olga")

    dispatcher.until(waiting, S.SUCCEEDED)


def test_results_that_cannot_be_read_are_tried_again_and_then_fail_as_ours(
    dispatcher, add_job, handler, monkeypatch, settings
):
    def read_results(job, envelope):
        raise ValueError("a mistake of ours")

    with monkeypatch.context() as patched:
        patched.setattr(handler, "read_results", read_results)
        job = add_job()
        dispatcher.step(5)
        assert Job.objects.get(pk=job.pk).status == S.COLLECTING
    dispatcher.until(job, S.SUCCEEDED)

    monkeypatch.setattr(handler, "read_results", read_results)
    settings.COLLECT_PATIENCE_S = 0
    job = dispatcher.until(add_job(), S.FAILED)
    assert job.failure_kind == "collect_failed"


def test_a_sick_storage_costs_time_and_no_result(dispatcher, add_job, fake, settings):
    reports = settings.STORAGES["reports"]["OPTIONS"]["location"]
    reports.write_text("a file where the folder should be")
    job = add_job()
    dispatcher.step(5)
    assert Job.objects.get(pk=job.pk).status == S.COLLECTING

    reports.unlink()

    dispatcher.until(job, S.SUCCEEDED)
    assert len(fake.calls("started", job.pk)) == 1
