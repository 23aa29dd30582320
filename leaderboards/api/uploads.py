"""What the ASGI wrapper found wrong with a request's body, and the answer to it."""

from __future__ import annotations

from enum import StrEnum

from django.conf import settings
from django.http import HttpRequest

from runners.exceptions import ServiceError

# Key of the ASGI scope; kernelbot_site/body_limit.py sets it when it stopped reading a body.
BODY_CUT = "kernelbot.body_cut"


class BodyCut(StrEnum):
    """Why reading stopped."""

    TOO_LARGE = "too_large"
    TOO_SLOW = "too_slow"


class UploadTooLarge(ServiceError):
    code = "file_too_large"
    http_status = 413


class UploadTooSlow(ServiceError):
    code = "upload_too_slow"
    http_status = 408


def require_whole_body(request: HttpRequest) -> None:
    """Raises UploadTooLarge or UploadTooSlow for a body that was cut off."""
    cut = getattr(request, "scope", {}).get(BODY_CUT)
    if cut == BodyCut.TOO_LARGE:
        raise UploadTooLarge(
            f"the upload is too large: at most {settings.SUBMISSION_MAX_BYTES:,} bytes are accepted"
        )
    if cut == BodyCut.TOO_SLOW:
        raise UploadTooSlow(
            f"the upload did not arrive within {settings.UPLOAD_LIMIT_S:g} seconds, send it again"
        )
