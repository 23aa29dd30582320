"""Which build of the GPU side this is."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path


@functools.cache
def build_id() -> str:
    """The first 12 hex digits of a SHA-256 over the names and contents of this folder's files."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:12]
