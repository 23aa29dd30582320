"""The folders of one job, and the safe laying out of files whose names came from outside.

Every step of a job gets a fresh folder, so what a submission did to the files of one step (the
evaluator's own among them) is not there in the next. Only HOME stays, for the caches in it.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path, PurePosixPath

from runners.gpu.contract import FailureKind
from runners.gpu.failures import Failed
from runners.gpu.process import Identity

MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 1024


class Workspace:
    """Makes folders below `root`, which belong to `identity` where one is given."""

    def __init__(self, root: Path, identity: Identity | None) -> None:
        self._root = root.resolve()
        self._identity = identity
        # Others may pass through to a folder whose name they know, and not see its neighbours.
        self._root.chmod(0o711)
        self.home = self.new_folder("home")
        self.tmp = self.new_folder("tmp")
        self.archives = self._root / "archives"  # never given away
        self.archives.mkdir(mode=0o700)

    def new_folder(self, name: str) -> Path:
        """A fresh folder; raises FileExistsError for a name that was used before."""
        folder = self._root / name
        folder.mkdir(mode=0o700)
        self._give_away(folder)
        return folder

    def private_folder(self) -> Path:
        """A fresh folder with a name that nobody can guess, not below any other folder of ours."""
        folder = Path(tempfile.mkdtemp(dir=self._root))
        self._give_away(folder)
        return folder

    def lay_out(self, folder: Path, files: dict[str, str]) -> None:
        """Write `files` into a fresh folder. Raises Failed (bad config) for an unsafe name."""
        check_names(files)
        for name, text in files.items():
            path = folder / name
            for parent in reversed(path.relative_to(folder).parents[:-1]):
                if not (folder / parent).is_dir():
                    (folder / parent).mkdir(mode=0o700)
                    self._give_away(folder / parent)
            try:
                content = text.encode()
            except UnicodeEncodeError as error:
                raise Failed(
                    FailureKind.BAD_CONFIG, f"The file {name!r} is not valid text."
                ) from error
            with path.open("xb") as out:
                out.write(content)
            self._give_away(path)

    def adopt(self, path: Path, *, mode: int) -> None:
        """Make a file that the harness wrote usable for the programs that it runs."""
        path.chmod(mode)
        self._give_away(path)

    def _give_away(self, path: Path) -> None:
        if self._identity:
            os.chown(path, self._identity.uid, self._identity.gid, follow_symlinks=False)


def check_names(names: dict[str, str]) -> None:
    """Raises Failed (bad config) unless all are plain relative paths that fit together."""
    for name in names:
        if problem := _problem_with(name):
            raise Failed(FailureKind.BAD_CONFIG, f"The file name {name[:80]!r} {problem}.")
    folders = {str(parent) for name in names for parent in PurePosixPath(name).parents}
    if clash := sorted(folders & set(names)):
        raise Failed(FailureKind.BAD_CONFIG, f"{clash[0][:80]!r} is both a file and a folder.")


def _problem_with(name: str) -> str | None:
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "is empty, absolute, or leads elsewhere"
    if name.startswith("-"):
        return "looks like an option"
    if not name.isprintable() or "\\" in name:
        return "holds characters that are not allowed"
    sizes = [len(os.fsencode(part)) for part in parts]
    if max(sizes) > MAX_NAME_BYTES or sum(sizes) + len(sizes) > MAX_PATH_BYTES:
        return "is too long"
    return None
