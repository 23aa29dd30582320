"""From a multipart request to a ProfileOrder: the shape of what was sent, nothing of its sense."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict
from rest_framework.exceptions import ParseError, UnsupportedMediaType, ValidationError
from rest_framework.request import Request

from leaderboards.api.uploads import require_whole_body
from leaderboards.models import ClientId
from profiling.actions import ProfileOrder
from profiling.api.serializers import CaptureOptionsSerializer

_OPTIONS = ("benchmark_index", "ncu_kernel_name", "ncu_kernel_name_base", "ncu_launch_count")


def read_order(request: Request, leaderboard: str, gpu: str, *, via: ClientId.Kind) -> ProfileOrder:
    """Raises ServiceError for a cut body and APIException for everything else."""
    form, upload = read_upload(request)
    options = CaptureOptionsSerializer(data=_each_once(form), context={"leaderboard": leaderboard})
    options.is_valid(raise_exception=True)
    return ProfileOrder(
        leaderboard_name=leaderboard,
        gpu_name=gpu,
        file_name=upload.name or "",
        content=upload.read(),
        via=via,
        **options.validated_data,
    )


def read_upload(request: Request) -> tuple[QueryDict, UploadedFile[bytes]]:
    """The form and its one file. Raises as `read_order`."""
    require_whole_body(request._request)
    return _form(request), _one_file(request)


def _form(request: Request) -> QueryDict:
    try:
        form = request.data
    except SuspiciousOperation as error:  # Django's limits on the number of parts
        raise ParseError("the form has too many parts") from error
    except UnsupportedMediaType as error:
        raise UnsupportedMediaType(
            request.content_type,
            detail="send the file as multipart/form-data, in a part named 'file'",
        ) from error
    return form if isinstance(form, QueryDict) else QueryDict()


def _one_file(request: Request) -> UploadedFile[bytes]:
    files: list[Any] = request.FILES.getlist("file")
    if len(files) > 1:
        raise ValidationError({"file": "send one file only"})
    if not files:
        raise ValidationError({"file": "a part named 'file' with a file name is missing"})
    upload: UploadedFile[bytes] = files[0]
    return upload


def _each_once(form: QueryDict) -> dict[str, str]:
    """The options as sent, empty ones too. An option that is sent twice has no meaning (FR-07)."""
    sent = {}
    for name in _OPTIONS:
        values: list[Any] = form.getlist(name)
        if len(values) > 1:
            raise ValidationError({name: "sent more than once"})
        if values:
            sent[name] = values[0]
    return sent
