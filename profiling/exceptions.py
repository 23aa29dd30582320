"""Why something about a profile cannot be done; for the client, as all `ServiceError`s are."""

from __future__ import annotations

from runners.exceptions import ServiceError


class NotCancellable(ServiceError):
    code = "not_cancellable"
    http_status = 409


class NotRerunnable(ServiceError):
    code = "not_rerunnable"
    http_status = 409


class NotReviewable(ServiceError):
    code = "not_reviewable"
    http_status = 409


class NotPaused(ServiceError):
    code = "not_paused"
    http_status = 409
