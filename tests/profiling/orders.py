"""Requests as a CLI makes them, without the HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from leaderboards.audit import NO_REQUEST
from leaderboards.models import PopcornUser
from profiling import actions
from profiling.actions import ProfileOrder
from profiling.models import ProfileRequest
from runners.exceptions import ServiceError

CLI = ProfileRequest.Origin.CLI
SOURCE = b"def custom_kernel(data):\n    return data\n"


def an_order(**fields: Any) -> ProfileOrder:
    defaults: dict[str, Any] = {
        "leaderboard_name": "rowsum",
        "gpu_name": "B200",
        "file_name": "submission.py",
        "content": SOURCE,
    }
    return ProfileOrder(**defaults | fields)


def submit(actor: PopcornUser, **fields: Any) -> ProfileRequest:
    return actions.submit_request(an_order(**fields), actor=actor, origin=CLI, context=NO_REQUEST)


def refuse(actor: PopcornUser) -> ProfileRequest:
    """A request that was turned away."""
    with pytest.raises(ServiceError):
        submit(actor, content=b"")
    return ProfileRequest.objects.latest("created_at")
