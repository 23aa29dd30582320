"""What clients send as JSON or in a query: an object whose fields are checked, told of in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import QueryDict
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.serializers import Serializer

from leaderboards.api.uploads import require_whole_body
from runners.exceptions import ServiceError


class NotAnObject(ServiceError):
    code = "not_an_object"
    http_status = 422


class BadFields(ServiceError):
    code = "bad_fields"


def read_body(request: Request, form: type[Serializer[Any]]) -> dict[str, Any]:
    """The validated fields of a JSON object. Raises NotAnObject (422) or BadFields (400)."""
    require_whole_body(request._request)
    if request.stream is None:
        raise NotAnObject("the body is missing: a JSON object is wanted")
    try:
        body = request.data
    except ParseError as error:
        raise NotAnObject("the body is not JSON") from error
    if not isinstance(body, Mapping) or isinstance(body, QueryDict):
        raise NotAnObject("the body must be a JSON object")
    return _validated(form(data=body))


def read_query(request: Request, form: type[Serializer[Any]]) -> dict[str, Any]:
    """The validated fields of the query. Raises BadFields (400)."""
    return _validated(form(data=request.query_params))


def _validated(form: Serializer[Any]) -> dict[str, Any]:
    if not form.is_valid():
        raise BadFields("; ".join(_told(form.errors)))
    fields: dict[str, Any] = form.validated_data
    return fields


def _told(errors: Any, field: str = "") -> list[str]:
    """DRF's nested errors, each as `field: message`."""
    if isinstance(errors, Mapping):
        inner = ((f"{field}.{name}".lstrip("."), error) for name, error in errors.items())
        return [text for name, error in inner for text in _told(error, name)]
    if isinstance(errors, list):
        return [text for error in errors for text in _told(error, field)]
    return [f"{field}: {errors}".removeprefix("non_field_errors: ")]
