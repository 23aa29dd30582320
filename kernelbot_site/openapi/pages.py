"""The schema of this very process, and a page to read it with."""

from __future__ import annotations

from functools import cache

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiYamlRenderer


@cache
def _schema(renderer: type[OpenApiYamlRenderer | OpenApiJsonRenderer]) -> bytes:
    """Made once: it takes a second and never changes."""
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    found = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    written: bytes = renderer().render(found)
    return written


@require_safe
def schema(request: HttpRequest) -> HttpResponse:
    return HttpResponse(_schema(OpenApiYamlRenderer), content_type="application/yaml")


@require_safe
def schema_json(request: HttpRequest) -> HttpResponse:
    """The same where clients of the reference look for it (wire-contract.md, 12)."""
    return HttpResponse(_schema(OpenApiJsonRenderer), content_type="application/json")


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    return render(request, "kernelbot/docs.html")
