"""Storages with the habits of object storage."""

from __future__ import annotations

from botocore.exceptions import EndpointConnectionError

from runners.storage import DurableFileStorage


class ForgetfulStorage(DurableFileStorage):
    """Overwrites, and does not show yet what was stored just now."""

    def exists(self, name):
        return False


class UnreachableStorage(DurableFileStorage):
    outages = (EndpointConnectionError,)

    def exists(self, name):
        raise EndpointConnectionError(endpoint_url="http://storage.example")

    def open(self, name, mode="rb"):
        raise EndpointConnectionError(endpoint_url="http://storage.example")
