"""Where the shared material lies beside the checkout; None where there is none."""

from __future__ import annotations

import os
from pathlib import Path

_beside = Path(os.environ.get("KERNELBOT_SHARED", Path(__file__).resolve().parents[2] / "shared"))
SHARED: Path | None = _beside if _beside.is_dir() else None
