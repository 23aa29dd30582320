"""Whether this process can do its work. /health, which needs nothing, is in asgi_wrappers.py."""

from __future__ import annotations

from django.db import Error as DatabaseError
from django.db import connection
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response


@api_view(["GET"])
def ready(request: Request) -> Response:
    """200 when the database answers, else 503."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return Response({"detail": "the database does not answer", "code": "not_ready"}, 503)
    return Response({"status": "ok"})
