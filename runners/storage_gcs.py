"""Report files in Google Cloud Storage; a file that is read is first fetched to the disk."""

from __future__ import annotations

from datetime import timedelta

from django.core.files import File
from google.api_core.exceptions import GoogleAPIError
from google.auth.exceptions import GoogleAuthError
from requests.exceptions import RequestException
from storages.backends.gcloud import GoogleCloudStorage


# The parent comes without types.
class ReportsGcsStorage(GoogleCloudStorage):  # type: ignore[misc]
    """As django-storages has it, with signed addresses as our other storages make them."""

    outages = (GoogleAPIError, GoogleAuthError, RequestException)

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        """Fetched at once, while errors are still told apart. Raises FileNotFoundError."""
        opened: File[bytes] = super()._open(name, mode)
        opened.seek(0)
        return opened

    def signed_url(self, name: str, file_name: str, content_type: str, seconds: int) -> str:
        """As that of storage_s3.py; the credentials must be a service account's."""
        parameters = {
            "expiration": timedelta(seconds=seconds),
            "response_disposition": f'attachment; filename="{file_name}"',
            "response_type": content_type,
        }
        url: str = self.url(name, parameters)
        return url
