"""What a segment of an address may be. Importing this registers the converters."""

from __future__ import annotations

from django.urls import register_converter
from django.urls.converters import StringConverter


class NameConverter(StringConverter):
    """One segment of a sane length; a longer one names nothing."""

    regex = r"[^/\x00]{1,200}"


register_converter(NameConverter, "name")
