"""Errors to Sentry, where an operator has one: SENTRY_DSN, and the extra `sentry` of this package.

An event says what the log says of an error, and where it was: no header, body, cookie or query of a
request, no client's address, no value of a variable.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from kernelbot_site.logs import Line, current_request_id, find_job


def report_errors(dsn: str, line: Line) -> None:
    """From now on, in this process; `line` hides what it knows to be secret, as in the log."""
    try:
        import sentry_sdk
        from sentry_sdk.integrations.django import DjangoIntegration
        from sentry_sdk.integrations.logging import ignore_logger
    except ImportError as error:
        raise ImproperlyConfigured(
            "SENTRY_DSN is set, but Sentry's client is not installed: it is the extra `sentry`"
        ) from error
    sentry_sdk.init(
        dsn=dsn,
        integrations=[DjangoIntegration()],
        auto_enabling_integrations=False,
        send_default_pii=False,
        include_local_variables=False,
        max_request_body_size="never",
        max_breadcrumbs=0,
        before_send=partial(_prepare, line),
    )
    ignore_logger("django.security.*")  # a stranger's fault, as in the log


def _prepare(line: Line, event: Any, hint: dict[str, Any]) -> Any:
    asked = event.pop("request", {})
    event.pop("user", None)
    event["request"] = {name: asked[name] for name in ("method", "url") if name in asked}
    record = hint.get("log_record")
    event["tags"] = {
        "request_id": current_request_id.get(),
        "job_id": find_job(record.args) if record else "",
    }
    return json.loads(line.hide(json.dumps(event)))
