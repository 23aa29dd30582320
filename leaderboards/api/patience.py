"""Reads that wait out a database which is away for some seconds.

popcorn-cli ends its command at the first poll that fails, whatever the reason (wire-contract.md, 5.3).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.http import HttpRequest
from django.http.response import HttpResponseBase

if TYPE_CHECKING:
    from rest_framework.views import APIView as Base
else:
    Base = object

PAUSES_S = (0.2, 0.5, 1.0, 2.0)


class PatientReads(Base):
    """Mixed into a view: a GET that found the database busy or away is tried again."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        for pause in PAUSES_S if request.method == "GET" else ():
            response = super().dispatch(request, *args, **kwargs)
            if response.status_code != 503 or connection.in_atomic_block:
                return response
            connection.close()
            time.sleep(pause)
        return super().dispatch(request, *args, **kwargs)
