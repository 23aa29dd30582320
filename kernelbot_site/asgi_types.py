"""The types of an ASGI application, as far as the wrappers use them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

type Scope = dict[str, Any]
type Message = dict[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Any], Awaitable[None]]
type App = Callable[[Scope, Receive, Send], Awaitable[None]]
