"""Report files in Azure's blob storage; a file that is read is first fetched to the disk."""

from __future__ import annotations

from azure.core.exceptions import AzureError, ResourceNotFoundError
from django.core.files import File
from storages.backends.azure_storage import AzureStorage


# The parent comes without types.
class ReportsAzureStorage(AzureStorage):  # type: ignore[misc]
    """As django-storages has it, with signed addresses as our other storages make them."""

    outages = (AzureError,)

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        """Fetched at once, while errors are still told apart. Raises FileNotFoundError."""
        opened: File[bytes] = super()._open(name, mode)
        try:
            opened.seek(0)
        except ResourceNotFoundError as error:
            raise FileNotFoundError(f"there is no {name}") from error
        return opened

    def signed_url(self, name: str, file_name: str, content_type: str, seconds: int) -> str:
        """As that of storage_s3.py; the account's key or a token must be given."""
        parameters = {
            "content_disposition": f'attachment; filename="{file_name}"',
            "content_type": content_type,
        }
        url: str = self.url(name, expire=seconds, parameters=parameters)
        return url
