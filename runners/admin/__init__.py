"""Jobs in the admin site."""

from __future__ import annotations

from runners.admin import jobs  # noqa: F401  registers them
