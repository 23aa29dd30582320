"""A repository of problems as files, as a git repository, and as the archive that GitHub makes."""

from __future__ import annotations

import io
import subprocess
import zipfile

COMMIT = "0123456789abcdef0123456789abcdef01234567"
COMPETITION = """\
name: Demo
problems:
  - {directory: rowsum_py, name: rowsum_demo, deadline: "2030-01-31", gpus: [B200, H100]}
  - {directory: transpose_py, name: transpose_demo}
"""
TASK = """\
files:
  - {name: submission.py, source: "@SUBMISSION@"}
  - {name: eval.py, source: eval.py}
  - {name: reference.py, source: ../reference.py}
lang: py
description: Sum every row of a matrix.
config: {main: eval.py}
tests: [{rows: 64, cols: 48, seed: 101}]
benchmarks: [{rows: 1024, cols: 512, seed: 7}]
gpus: [H100]
"""


def problem_files(**changed):
    """Texts by path; None takes a file away."""
    files = {
        "problems/demo.yaml": COMPETITION,
        "problems/reference.py": "MARK_REFERENCE = 1\n",
        "problems/rowsum_py/task.yml": TASK,
        "problems/rowsum_py/eval.py": "MARK_EVALUATOR = 1\n",
        "problems/transpose_py/task.yml": TASK,
        "problems/transpose_py/eval.py": "MARK_EVALUATOR = 1\n",
    } | {name.replace("__", "/"): text for name, text in changed.items()}
    return {name: text for name, text in files.items() if text is not None}


def zipped(files, *, top="reference-kernels-main/", comment=COMMIT):
    """What GitHub sends for a branch: one folder, and the commit as the archive's comment."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name if isinstance(name, zipfile.ZipInfo) else top + name, text)
        archive.comment = comment.encode()
    return packed.getvalue()


def write_files(folder, files):
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        # An older test may have left a link here, and what it leads to must never be written.
        place.unlink(missing_ok=True)
        place.write_text(text)


def git(folder, *arguments):
    who = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(folder), *who, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit_files(folder, files, branch="main"):
    """Commit these files on a branch of a repository, new or not; gives the commit."""
    if not (folder / ".git").exists():
        folder.mkdir(parents=True)
        git(folder, "init", "-q")
    git(folder, "checkout", "-q", "-B", branch)
    write_files(folder, files)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "problems")
    return git(folder, "rev-parse", "HEAD")
