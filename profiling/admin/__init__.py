"""Requests, captures, stored files and pauses in the admin site."""

from __future__ import annotations

from profiling.admin import captures, gpus, requests  # noqa: F401  registers them
