from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNPICKLE = """
import io, pickle, sys
from runners.dispatcher.no_pickle import forbid_unpickling
forbid_unpickling()
bomb = b"cbuiltins\\nprint\\n(Vowned\\ntR."
print(pickle.loads(pickle.dumps({"plain": [1, "two"]})))
getattr(pickle, sys.argv[1])(io.BytesIO(bomb)).load()
"""


@pytest.mark.parametrize("unpickler", ["Unpickler", "_Unpickler"])
def test_no_class_or_function_is_unpickled_in_a_dispatcher(unpickler):
    """FR-25: the unpickler in C and the one in Python; in a process of its own, for good."""
    done = subprocess.run(
        [sys.executable, "-c", UNPICKLE, unpickler], cwd=ROOT, capture_output=True, text=True
    )

    assert done.stdout == "{'plain': [1, 'two']}\n"
    assert "unpickling builtins.print is forbidden in this process" in done.stderr
    assert done.returncode == 1
