from __future__ import annotations

import pytest
from asgiref.sync import async_to_sync

from runners import handlers
from runners.backends.fake import FakeRunner
from runners.dispatcher.loop import Dispatcher
from runners.models import Job
from runners.transitions import queue_job
from tests.runners.testapp.handler import TestJobHandler


class Steps:
    """A dispatcher that is driven step by step, in the thread and transaction of the test."""

    def __init__(self, owner="one"):
        self.dispatcher = Dispatcher(owner)

    def step(self, times=1):
        for _ in range(times):
            async_to_sync(self.dispatcher.step)()

    def until(self, job, *statuses, steps=20):
        for _ in range(steps):
            if Job.objects.get(pk=job.pk).status in statuses:
                break
            self.step()
        job.refresh_from_db()
        assert job.status in statuses, (job.status, job.failure_kind, job.failure_message)
        return job


@pytest.fixture
def handler(monkeypatch):
    handler = TestJobHandler()
    monkeypatch.setitem(handlers._handlers, "test", handler)
    return handler


@pytest.fixture
def fake(settings, tmp_path):
    settings.FAKE_RUNNER_DIR = tmp_path / "fake"
    return FakeRunner()


@pytest.fixture
def quick(settings):
    """Pauses that a test can wait for, and those that it must not wait for, gone."""
    settings.POLL_EVERY_S = 0.01
    settings.START_LIMIT_S = 0.2
    settings.START_MARGIN_S = 0
    settings.RETRY_DELAY_S = 0
    settings.POISON_DELAY_S = 0
    return settings


@pytest.fixture
def dispatcher(db, handler, fake, quick, settings, tmp_path):
    storage = settings.STORAGES["reports"]
    settings.STORAGES = settings.STORAGES | {
        "reports": storage | {"OPTIONS": {"location": tmp_path / "reports", "base_url": None}}
    }
    return Steps()


@pytest.fixture
def add_job(db, handler):
    def add(gpu="B200", owner_key="alice"):
        return queue_job(
            kind="test", gpu=gpu, runner="fake", owner_key=owner_key, actor_label=owner_key
        )

    return add
