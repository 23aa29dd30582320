"""Submission ids in addresses."""

from __future__ import annotations

import re

from rest_framework.exceptions import NotFound, ValidationError

ID_MAX = 2**63 - 1
_ID = re.compile(r"[0-9]+", re.ASCII)


def read_id(sent: str) -> int:
    """Raises ValidationError (422) for no number, and NotFound for one that nothing has."""
    if not _ID.fullmatch(sent):
        raise ValidationError({"id": "a whole number is wanted"})
    if len(sent) > len(str(ID_MAX)) or int(sent) > ID_MAX:
        raise NotFound
    return int(sent)
