"""REPORTS_STORAGE_URL, as settings.py reads it in a process that starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHOW = """
import json
from kernelbot_site.settings import STORAGES
print(json.dumps(STORAGES["reports"], default=str))
"""


def start(**env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SHOW],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "SECRET_KEY": "only for this test"} | env,
        capture_output=True,
        text=True,
        check=False,
    )


def chosen(**env: str) -> tuple[str, dict[str, object]]:
    done = start(**env)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return found["BACKEND"].rpartition(".")[2], found["OPTIONS"]


def test_without_an_address_files_are_kept_in_the_data_folder(tmp_path):
    folder = tmp_path / "with #1 and %"

    assert chosen(DATA_DIR=str(folder)) == (
        "DurableFileStorage",
        {"location": str(folder / "reports"), "base_url": None},
    )


def test_a_folder_is_given_by_its_absolute_path():
    backend, options = chosen(REPORTS_STORAGE_URL="file:///srv/reports")

    assert (backend, options["location"]) == ("DurableFileStorage", "/srv/reports")


def test_a_bucket_of_s3_has_a_prefix_and_a_server_if_wanted():
    backend, options = chosen(
        REPORTS_STORAGE_URL="s3://bucket/some/prefix", REPORTS_S3_ENDPOINT="http://127.0.0.1:9000"
    )

    assert backend == "ReportsS3Storage"
    assert (options["bucket_name"], options["location"]) == ("bucket", "some/prefix")
    assert options["endpoint_url"] == "http://127.0.0.1:9000"


@pytest.mark.parametrize(
    ("address", "extra", "library"),
    [("gs://bucket", "gcs", "google"), ("azure://container", "azure", "azure")],
)
def test_a_storage_whose_library_is_missing_is_refused_at_the_start(address, extra, library):
    if find_spec(library):
        pytest.skip(f"{library} is installed here")

    done = start(REPORTS_STORAGE_URL=address)

    assert done.returncode != 0
    assert "REPORTS_STORAGE_URL" in done.stderr
    assert f"'.[{extra}]'" in done.stderr


@pytest.mark.parametrize(
    ("address", "library", "expected"),
    [
        (
            "gs://bucket/prefix",
            "google/cloud/storage",
            ("ReportsGcsStorage", {"bucket_name": "bucket", "location": "prefix"}),
        ),
        (
            "azure://container",
            "azure/storage/blob",
            ("ReportsAzureStorage", {"azure_container": "container", "location": ""}),
        ),
    ],
)
def test_where_the_library_is_installed_its_storage_is_chosen(tmp_path, address, library, expected):
    """The library is an empty stand-in: only the choice is shown, not that the storage works."""
    (tmp_path / library).mkdir(parents=True)
    (tmp_path / library / "__init__.py").touch()

    backend, options = chosen(REPORTS_STORAGE_URL=address, PYTHONPATH=str(tmp_path))

    assert backend == expected[0]
    assert expected[1].items() <= options.items()


@pytest.mark.parametrize(
    ("address", "endpoint", "words"),
    [
        ("", "", "is wanted"),
        ("reports", "", "is wanted"),
        ("ftp://host/reports", "", "is wanted"),
        ("s3://", "", "name of a bucket"),
        ("file://srv/reports", "", "absolute path"),
        ("s3://key:secret@bucket", "", "only a scheme"),
        ("file:///srv/reports", "http://127.0.0.1:9000", "only of s3"),
    ],
)
def test_an_address_that_cannot_be_meant_stops_the_process(address, endpoint, words):
    done = start(REPORTS_STORAGE_URL=address, REPORTS_S3_ENDPOINT=endpoint)

    assert done.returncode != 0
    assert "REPORTS_STORAGE_URL" in done.stderr
    assert words in done.stderr
    assert "secret" not in done.stderr.rpartition("EnvValidationError")[2]
