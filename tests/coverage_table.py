"""python -m tests.coverage_table [BASE]: lines that tests ran, per file, and of what changed since.

Without BASE: since the branch left origin/main, or else since the last commit. A clone that holds
no such commit has no changed lines to tell of, and the table says so.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from coverage import Coverage

HUNK = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")
ROW = "{:<58} {:>6} {:>6} {:>5}  {:>8} {:>8}  {}"


def main() -> None:
    measured = Coverage()
    measured.load()
    base = find_base(sys.argv[1:])
    changed = changed_lines(base) if base else {}
    root, totals = Path.cwd(), [0, 0, 0, 0]
    print(ROW.format("file", "lines", "not run", "%", "changed", "not run", "changed and not run"))
    for path in sorted(measured.get_data().measured_files()):
        name = str(Path(path).relative_to(root))
        _, statements, _, missing, _ = measured.analysis2(path)
        new = changed[name] & set(statements) if name in changed else set()
        left = sorted(new & set(missing))
        figures = len(statements), len(missing), len(new), len(left)
        totals = [total + figure for total, figure in zip(totals, figures, strict=True)]
        print(row(name, *figures, spans(left)))
    print(row("all", *totals, ""))
    print(f"Changed: since {base}." if base else "Changed: not known, this clone has one commit.")


def row(name: str, lines: int, missed: int, changed: int, left: int, where: str) -> str:
    share = f"{100 * (lines - missed) // lines}" if lines else "-"
    told = (changed, left) if changed else ("", "")
    return ROW.format(name, lines, missed, share, *told, where).rstrip()


def find_base(given: list[str]) -> str:
    """The commit to compare with, empty where this clone has none."""
    head = git("rev-parse", "HEAD")
    fork, before = git("merge-base", "origin/main", "HEAD"), git("rev-parse", "HEAD~1")
    return next((each for each in (*given, fork, before) if each not in ("", head)), "")


def changed_lines(base: str) -> dict[str, set[int]]:
    """Numbers of the lines of each Python file that are new since, the working tree included."""
    changed: dict[str, set[int]] = defaultdict(set)
    name = ""
    for line in git("diff", "--unified=0", "--no-color", base, "--", "*.py").splitlines():
        if line.startswith("+++ b/"):
            name = line.removeprefix("+++ b/")
        elif hunk := HUNK.match(line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            changed[name] |= set(range(first, first + count))
    return changed


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def spans(numbers: list[int]) -> str:
    """3, 4, 5, 9 as 3-5, 9."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


if __name__ == "__main__":
    main()
