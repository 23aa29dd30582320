"""The runners by name. Each GPU type has one, by configuration, and no other takes its place."""

from __future__ import annotations

from runners.backends.base import Runner


def make_runner(name: str) -> Runner:
    """A runner of this name; raises LookupError when there is none."""
    if name == "modal":
        from runners.backends.modal_runner import ModalRunner

        return ModalRunner()
    if name == "local":
        from runners.backends.local import LocalRunner

        return LocalRunner()
    if name == "recorded":
        from runners.backends.recorded import RecordedRunner

        return RecordedRunner()
    if name == "fake":
        from runners.backends.fake import FakeRunner

        return FakeRunner()
    raise LookupError(f"there is no runner {name!r}")
