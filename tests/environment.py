"""The environment that settings.py reads under pytest, set before Django is loaded.

DATABASE_URL is left alone: `make test-services` points it at PostgreSQL.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile

GPU_TYPES = {
    "B200": {"runner": "fake", "sm": "100", "ncu": True, "max_in_flight": 4},
    "H100": {"runner": "fake", "sm": "90a", "ncu": True, "max_in_flight": 1},
    "L4x4": {"runner": "fake", "sm": "89", "ncu": True, "device_count": 4},
    "MI300": {"runner": "fake"},
    "CPU": {"runner": "local"},
}

DATA_DIR = tempfile.mkdtemp(prefix="kernelbot-tests-")
atexit.register(shutil.rmtree, DATA_DIR, ignore_errors=True)

os.environ |= {
    "SECRET_KEY": "only for tests, and long enough for the checks of Django",
    "DATA_DIR": DATA_DIR,
    "GPU_TYPES": json.dumps(GPU_TYPES),
    "PUBLIC_URL": "http://testserver",
    "ALLOWED_HOSTS": "testserver,127.0.0.1,localhost",
}

# Whatever measures the tests measures the processes that they start as well: make coverage.
MEASURED = {
    name: value for name, value in os.environ.items() if name.startswith("COVERAGE_PROCESS_")
}
