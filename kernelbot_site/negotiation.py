"""Content negotiation that cannot fail: a 406 would hide every other answer."""

from __future__ import annotations

from typing import Any

from rest_framework.negotiation import BaseContentNegotiation, DefaultContentNegotiation


class AlwaysJson(BaseContentNegotiation):
    """Bodies are JSON whatever Accept says; event streams are made by their views."""

    def select_parser(self, request: Any, parsers: Any) -> Any:
        return DefaultContentNegotiation().select_parser(request, parsers)

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type
