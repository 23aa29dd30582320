"""Nothing that a GPU container sends is ever unpickled in the dispatcher's process."""

from __future__ import annotations

import sys


def forbid_unpickling() -> None:
    """From now on unpickling any class or function raises, whoever asks; it cannot be undone.

    Called before anything else of a provider is imported: Modal's client unpickles whatever the
    container labels as pickle (docs/architecture.md).
    """
    sys.addaudithook(_refuse_classes)


# Python traces nothing of a hook; tests/runners/test_no_pickle.py runs it.
def _refuse_classes(event: str, args: tuple[object, ...]) -> None:  # pragma: no cover
    if event == "pickle.find_class":  # raised by the C and by the Python unpickler
        raise RuntimeError(f"unpickling {args[0]}.{args[1]} is forbidden in this process")
