"""How drf-spectacular reads this service: docs/openapi.yaml is what comes of it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from drf_spectacular.drainage import warn
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import build_mock_request

from kernelbot_site.openapi.security import CLI, SESSION, TOKEN, WEB
from leaderboards.api.authentication import (
    ClientIdAuthentication,
    CliIdAuthentication,
    OperatorSession,
    OptionalClientId,
)
from leaderboards.api.operator_token import AdminTokenAuthentication, RequiresAdminToken

# Any of these will do.
_GUARDS: dict[type, list[dict[str, list[str]]]] = {
    CliIdAuthentication: [{CLI: []}],
    ClientIdAuthentication: [{CLI: []}, {WEB: []}],
    OptionalClientId: [{CLI: []}, {WEB: []}, {}],
    AdminTokenAuthentication: [{TOKEN: []}],
    OperatorSession: [{SESSION: []}],
}
_TAGS = (("admin", "operators"), ("api", "profiles"), ("profile", "profiles"), ("auth", "identity"))


def mock_request(method: str, path: str, view: Any, original: Any, **options: Any) -> Any:
    """A view may choose its guards by the method, before there is a request."""
    view.request = HttpRequest()
    view.request.method = method
    return build_mock_request(method, path, view, original, **options)  # type: ignore[no-untyped-call]


class TabledSchema(AutoSchema):
    """Takes bodies and answers from the table of operations."""

    @property
    def _operation(self) -> Any:
        from kernelbot_site.openapi.operations import (  # the views import this module
            OPERATIONS,
            UNKNOWN,
        )

        key = (type(self.view), getattr(self.view, "action", None) or self.method.lower())
        if key not in OPERATIONS:
            warn(f"{key[0].__name__}.{key[1]} is missing in operations.py")
        return OPERATIONS.get(key, UNKNOWN)

    def get_request_serializer(self) -> Any:
        return self._operation.body

    def get_response_serializers(self) -> Any:
        from kernelbot_site.openapi.shapes import ERROR

        return self._operation.answers | {"default": ERROR}

    def get_override_parameters(self) -> list[Any]:
        return list(self._operation.query)

    def get_tags(self) -> list[str]:
        first = self.path.strip("/").split("/")[0]
        return [dict(_TAGS).get(first, "submissions")]

    def get_auth(self) -> list[dict[str, list[str]]]:
        """Where the token is needed as well as a person, both are in one requirement."""
        guards = [type(each) for each in self.view.get_authenticators()]
        found = [each for guard in guards for each in _GUARDS[guard]]
        if RequiresAdminToken in self.view.permission_classes:
            return [{**each, TOKEN: []} for each in found]
        return found

    def get_operation_id(self) -> str:
        return self._operation.id or str(super().get_operation_id())

    def is_excluded(self) -> bool:
        """About the process, and not of the API."""
        return self.path == "/ready"
