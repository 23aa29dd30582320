"""Where report files are kept: one address, REPORTS_STORAGE_URL, for every kind of storage."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

# Above this a fetched file lies on the disk, not in memory.
MEMORY_BYTES = 2 * 2**20


def read_storage(address: str, *, endpoint: str | None = None) -> dict[str, Any]:
    """Django's entry for `file:///path`, `s3://bucket`, `gs://bucket` or `azure://container`.

    A path after bucket or container is where our keys begin. `endpoint` is of an S3 server that is
    not Amazon's. Raises ValueError with what is wrong, also where a library is not installed.
    """
    parts = urlsplit(address)
    if parts.query or parts.fragment or "@" in parts.netloc or ":" in parts.netloc:
        raise ValueError("the address of a storage is only a scheme, a name and a path")
    if parts.scheme not in ("file", "s3", "gs", "azure"):
        raise ValueError("file:///path, s3://bucket, gs://bucket or azure://container is wanted")
    if endpoint and parts.scheme != "s3":
        raise ValueError("an endpoint is only of s3://")
    if parts.scheme == "file":
        return _local(parts)
    if not parts.netloc:
        raise ValueError(f"{parts.scheme}:// needs the name of a bucket or container")
    if parts.scheme == "s3":
        return _s3(parts, endpoint)
    return _gcs(parts) if parts.scheme == "gs" else _azure(parts)


def _local(parts: SplitResult) -> dict[str, Any]:
    if parts.netloc or len(parts.path) < 2:
        raise ValueError("file:// needs an absolute path: file:///srv/reports")
    return {
        "BACKEND": "runners.storage.DurableFileStorage",
        "OPTIONS": {"location": Path(unquote(parts.path)), "base_url": None},
    }


# All of them replace files: keys hold job and attempt, and artifacts.py compares contents.
def _s3(parts: SplitResult, endpoint: str | None) -> dict[str, Any]:
    return {
        "BACKEND": "runners.storage_s3.ReportsS3Storage",
        "OPTIONS": {
            "bucket_name": parts.netloc,
            "location": parts.path.strip("/"),
            "endpoint_url": endpoint or None,
            "file_overwrite": True,
            "default_acl": None,
        },
    }


def _gcs(parts: SplitResult) -> dict[str, Any]:
    _require("google.cloud.storage", extra="gcs")
    return {
        "BACKEND": "runners.storage_gcs.ReportsGcsStorage",
        "OPTIONS": {
            "bucket_name": parts.netloc,
            "location": parts.path.strip("/"),
            "file_overwrite": True,
            "max_memory_size": MEMORY_BYTES,
        },
    }


def _azure(parts: SplitResult) -> dict[str, Any]:
    _require("azure.storage.blob", extra="azure")
    return {
        "BACKEND": "runners.storage_azure.ReportsAzureStorage",
        "OPTIONS": {
            "azure_container": parts.netloc,
            "location": parts.path.strip("/"),
            "connection_string": os.environ.get("AZURE_STORAGE_CONNECTION_STRING"),
            "overwrite_files": True,
            "max_memory_size": MEMORY_BYTES,
        },
    }


def _require(module: str, *, extra: str) -> None:
    try:
        found = find_spec(module)
    except ModuleNotFoundError:  # not even the package around it
        found = None
    if found is None:
        raise ValueError(
            f"{module} is not installed; this storage needs the extra {extra!r}: "
            f"pip install '.[{extra}]'"
        )
