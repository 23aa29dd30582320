"""An S3 server as a process of its own, to be killed and frozen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import boto3
import botocore.config
import botocore.exceptions

from tests.server.service import ROOT, free_port

BUCKET = "reports"
AWS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
}


class ObjectStore:
    """A process that speaks S3 and keeps its objects in memory."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        """Start; or start again, empty, after `kill`."""
        self.process = subprocess.Popen(
            self.command(),
            cwd=ROOT,
            env=AWS | {"PATH": os.environ["PATH"]},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                self.client().create_bucket(Bucket=BUCKET)
            except botocore.exceptions.BotoCoreError:
                assert time.monotonic() < deadline, "the S3 server did not start"
                time.sleep(0.1)
            else:
                return

    def command(self) -> list[str]:
        return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]

    def client(self) -> Any:
        session = boto3.Session(*AWS.values())
        config = botocore.config.Config(retries={"max_attempts": 0}, connect_timeout=5)
        return session.client("s3", endpoint_url=self.url, config=config)

    def keys(self) -> list[str]:
        return [
            each["Key"] for each in self.client().list_objects(Bucket=BUCKET).get("Contents", [])
        ]

    def empty(self) -> None:
        client = self.client()
        for key in self.keys():
            client.delete_object(Bucket=BUCKET, Key=key)

    def kill(self) -> None:
        self.thaw()
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)
