"""Report files in S3 and its kin, read in ranges, so that no file is ever whole in memory or here."""

from __future__ import annotations

import io
import logging
import threading
import time
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files import File
from storages.backends.s3 import S3Storage
from storages.utils import clean_name

logger = logging.getLogger(__name__)

# One request each; what one open file takes of memory.
RANGE_BYTES = 4 * 2**20
PIECE_BYTES = 2**16
CONNECT_LIMIT_S = 5
STALL_LIMIT_S = 20
# Sessions are not safe to use from two threads at once.
_connecting = threading.Lock()
# How long a file that is being read waits for a storage that stopped answering.
READ_PATIENCE_S = 120.0
READ_AGAIN_S = 2.0


# The parent comes without types.
class ReportsS3Storage(S3Storage):  # type: ignore[misc]
    """As django-storages has it, but for reading, and with time limits of our own."""

    client_config: Any
    outages = (BotoCoreError, ClientError)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._shared_session: Any = None
        self.client_config = self.client_config.merge(
            Config(
                signature_version="s3v4",  # else addresses are signed as newer regions refuse
                connect_timeout=CONNECT_LIMIT_S,
                read_timeout=STALL_LIMIT_S,
                retries={"mode": "standard", "max_attempts": 2},
            )
        )

    @property
    def connection(self) -> Any:
        """A thread's own, as boto3 asks for."""
        with _connecting:
            return super().connection

    def _create_session(self) -> Any:
        """One for all threads: each holds 17 MB of descriptions of services."""
        if self._shared_session is None:
            self._shared_session = super()._create_session()
        return self._shared_session

    def signed_url(self, name: str, file_name: str, content_type: str, seconds: int) -> str:
        """An address that gives the file without credentials for so long; nothing is asked."""
        parameters = {
            "ResponseContentDisposition": f'attachment; filename="{file_name}"',
            "ResponseContentType": content_type,
        }
        url: str = self.url(name, parameters, expire=seconds)
        return url

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        """Raises FileNotFoundError, BotoCoreError or ClientError."""
        if mode != "rb":
            raise ValueError("a stored file is only ever read")
        key = self._normalize_name(clean_name(name))
        client = self.connection.meta.client
        try:
            head = client.head_object(Bucket=self.bucket_name, Key=key)
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
                raise FileNotFoundError(f"there is no {name}") from error
            raise
        where = {"Bucket": self.bucket_name, "Key": key, "IfMatch": head["ETag"]}
        raw = _Ranges(client, where, int(head["ContentLength"]))
        return File(io.BufferedReader(raw, RANGE_BYTES), name)


class _Ranges(io.RawIOBase):
    """An object as a file that can be read and sought; it is the same object throughout."""

    def __init__(self, client: Any, where: dict[str, str], size: int) -> None:
        self._client, self._where, self._size = client, where, size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, begin + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Raises OSError when the storage stays away, or holds another object by now."""
        length = min(len(buffer), self._size - self._at)
        if length <= 0:
            return 0
        self._patiently_fill(memoryview(buffer)[:length], self._at)
        self._at += length
        return length

    def _patiently_fill(self, buffer: memoryview, begin: int) -> None:
        deadline = time.monotonic() + READ_PATIENCE_S
        while True:
            try:
                return self._fill(buffer, begin)
            except (BotoCoreError, ClientError, OSError) as error:
                if _is_final(error) or time.monotonic() > deadline:
                    raise OSError(f"the storage does not give {self._where['Key']}") from error
                logger.warning("reading %s is tried again: %r", self._where["Key"], error)
                time.sleep(READ_AGAIN_S)

    def _fill(self, buffer: memoryview, begin: int) -> None:
        asked = f"bytes={begin}-{begin + len(buffer) - 1}"
        answer = self._client.get_object(**self._where, Range=asked)
        filled = 0
        body = answer["Body"]
        with body:
            for piece in body.iter_chunks(PIECE_BYTES):
                buffer[filled : filled + len(piece)] = piece
                filled += len(piece)
        if filled != len(buffer):
            raise OSError(f"{filled} bytes came for {asked}")


def _is_final(error: Exception) -> bool:
    """Gone, another object, or not permitted: waiting does not mend that."""
    if not isinstance(error, ClientError):
        return False
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status in (403, 404, 412)
