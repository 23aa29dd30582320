"""The readable forms of a report: ncu's details page as text and as CSV, and a short extract."""

from __future__ import annotations

from pathlib import Path

from runners.gpu import process
from runners.gpu.context import Context
from runners.gpu.ncu import Profiler

REPORT = "profile.ncu-rep"
DETAILS_TEXT = "ncu-details.txt"
DETAILS_CSV = "ncu-details.csv"
FORMATS = {DETAILS_TEXT: (), DETAILS_CSV: ("--csv",)}

MAX_REASON = 500
EXTRACT_KERNELS = 2
EXTRACT_LINES = 100
EXTRACT_WIDTH = 400
EXTRACT_SECTIONS = (
    "GPU Speed Of Light Throughput",
    "Compute Workload Analysis",
    "Warp State Statistics",
)


def export_details(context: Context, profiler: Profiler, folder: Path) -> list[str]:
    """Write both files beside the report in `folder`; what went wrong, in words.

    A second step makes them from the report, so nothing that the program printed is in them.
    """
    return [
        problem
        for name, options in FORMATS.items()
        if (problem := _export(context, profiler, folder, name, options))
    ]


def _export(
    context: Context, profiler: Profiler, folder: Path, name: str, options: tuple[str, ...]
) -> str | None:
    seconds = context.export_seconds()
    target = folder / name
    finished = process.run(
        [
            profiler.path,
            *("--config-file", "off"),
            *("--import", str(folder / REPORT)),
            *("--page", "details"),
            *options,
        ],
        cwd=folder,
        env=context.environment(HOME=str(folder), TMPDIR=str(folder)),
        bounds=context.bounds(seconds),
        identity=context.identity,
        stdout_to=target,
    )
    if finished.timed_out or finished.exit_code != 0:
        target.unlink()  # half of a table is worse than none
        how = f"exit code {finished.exit_code}: {finished.stderr.strip()[:MAX_REASON]}"
        return f"The export {name} failed ({f'over {seconds:g} s' if finished.timed_out else how})."
    if not _has_rows(target, csv=name == DETAILS_CSV):
        return f"The export {name} holds no rows."
    return None


def _has_rows(path: Path, *, csv: bool) -> bool:
    """CSV rows follow a header that names the column ID; other lines may stand before it."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        if csv and not any(line.startswith(('"ID"', "ID,")) for line in lines):
            return False
        return any(line.strip() for line in lines)


def extract(details: Path) -> str:
    """The tables that matter most, of the first two kernels: 100 lines at most."""
    if not details.is_file():
        return ""
    taken: list[str] = []
    kernels, wanted = 0, False
    with details.open(encoding="utf-8", errors="replace") as lines:
        for raw in lines:
            line = raw.replace("\0", "").rstrip()[:EXTRACT_WIDTH]
            if _is_kernel(line):
                kernels, wanted = kernels + 1, False
                if kernels > EXTRACT_KERNELS:
                    break
                taken.append(line)
            elif line.startswith("    Section: "):
                wanted = line.removeprefix("    Section: ") in EXTRACT_SECTIONS
            if wanted:
                taken.append(line)
            if len(taken) >= EXTRACT_LINES:
                break
    return "\n".join(taken)


def _is_kernel(line: str) -> bool:
    """A kernel's line is indented by two blanks, all that is about it by four and more."""
    return line.startswith("  ") and line[2:3] not in ("", " ")
