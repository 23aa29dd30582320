"""Databases as earlier releases left them become today's, with every row, and today's code reads them.

tests/releases.json names the releases; `write.py` made their rows with their own code.
"""

from __future__ import annotations

import base64
import json
import uuid
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection, connections, models, transaction
from django.db.migrations.executor import MigrationExecutor
from django.test import Client

from leaderboards.models import Standing
from profiling.models import ProfileRequest
from runners.models import Artifact, Job
from runners.states import JobStatus

HERE = Path(__file__).parent
RELEASES = json.loads((HERE.parent / "releases.json").read_text())


@pytest.fixture
def empty_database(django_db_setup, django_db_blocker, tmp_path):
    """A database without tables in the place of `default`, of the kind that this run tests on."""
    with django_db_blocker.unblock():
        usual, name = connections["default"], f"upgrade_{uuid.uuid4().hex}"
        is_file = usual.vendor == "sqlite"
        if not is_file:
            outside(usual, f'CREATE DATABASE "{name}"')
        made = usual.copy()
        made.settings_dict["NAME"] = str(tmp_path / "old.sqlite3") if is_file else name
        connections["default"] = made
        try:
            yield
        finally:
            made.close()
            connections["default"] = usual
            if not is_file:
                outside(usual, f'DROP DATABASE "{name}"')


def outside(usual, sql: str) -> None:
    """What no transaction may hold, and no connection to the database itself."""
    with usual._nodb_cursor() as cursor:
        cursor.execute(sql)


def load(models_then, rows) -> None:
    """As that release had written them: no default of today, no time of now."""
    with transaction.atomic():
        for row in rows:
            model = models_then.get_model(row["model"])
            made = model(pk=model._meta.pk.to_python(row["pk"]))
            for name, value in row["fields"].items():
                field = model._meta.get_field(name)
                if not field.many_to_many:
                    target = field.target_field if field.is_relation else field
                    setattr(made, field.attname, target.to_python(value))
            models.Model.save_base(made, raw=True, force_insert=True)


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release["name"])
def test_what_an_earlier_release_kept_is_there_and_readable_today(
    release, empty_database, settings, tmp_path
):
    folder = HERE / release["name"]
    rows = json.loads((folder / "rows.json").read_text())
    leaves = sorted(release["migrations"].items())
    executor = MigrationExecutor(connection)
    # Other apps go as far as these need them.
    executor.migrate(leaves)
    load(executor.loader.project_state(leaves).apps, rows)
    for name, content in json.loads((folder / "files.json").read_text()).items():
        (tmp_path / "reports" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "reports" / name).write_bytes(base64.b64decode(content))
    storage = settings.STORAGES["reports"]
    settings.STORAGES = settings.STORAGES | {
        "reports": storage | {"OPTIONS": storage["OPTIONS"] | {"location": tmp_path / "reports"}}
    }

    call_command("migrate", verbosity=0)

    # Later releases may add rows of their own, and lose none.
    for row in rows:
        assert apps.get_model(row["model"]).objects.filter(pk=row["pk"]).exists(), row
    call_command("verify_reports", verbosity=0)  # raises where one is missing or changed
    assert_todays_code_reads_it()


def assert_todays_code_reads_it() -> None:
    client = Client(headers={"X-Popcorn-Cli-Id": "alice-cli-id"})
    for request in ProfileRequest.objects.select_related("job"):
        told = client.get(f"/api/profile-requests/{request.pk}/")
        assert told.status_code == 200, told.content
        assert told.json()["id"] == str(request.pk)
    assert {job.status for job in Job.objects.filter(kind="profile")} == {
        JobStatus.SUCCEEDED,
        JobStatus.RUNNING,
        JobStatus.QUEUED,
    }
    assert Artifact.objects.count() == 3
    ranking = client.get("/submissions/rowsum/B200")
    assert [entry["user_name"] for entry in ranking.json()] == ["alice"], ranking.content
    assert Standing.objects.get().score == pytest.approx(0.002)
    operator = Client()
    assert operator.login(username="olga", password="olga-password")
    for page in ("profiling/profilerequest", "leaderboards/submission", "runners/job"):
        assert operator.get(f"/operators/{page}/").status_code == 200
