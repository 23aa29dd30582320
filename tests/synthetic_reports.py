"""Writes `.ncu-rep` files of any content. They are synthetic: never show one as a capture.

A report is "NVR", NUL, then protobuf messages, each behind its length. The field numbers below
are those of the descriptors inside the `ncu_report` library, which loads these files and gives
the very same values back, NaN and infinity included.

    python -m tests.synthetic_reports OUT.zip     writes the archive that `make demo` replays
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import random
import struct
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Dim3 = tuple[int, int, int]
# None is a metric that is listed without a value, as reports of failed launches have them.
MetricValue = float | int | str | None

# The library tells units only for a chip that it knows; 416 is what reports of a B200 say.
DEVICE: Mapping[str, MetricValue] = {
    "device__attribute_display_name": "NVIDIA B200 (synthetic)",
    "device__attribute_implementation": 416,
}

SYNTHETIC = "This is a synthetic report made by a program. It is no capture: nothing was measured."


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One kernel launch. `name=None` writes a damaged one, which a reader sees without a name.

    `metrics` is all that a reader finds: real reports also hold those of `dimensions()`, and
    `DEVICE`, without which every unit reads as "".
    """

    name: str | None
    demangled: str | None = None
    mangled: str | None = None
    grid: Dim3 = (1, 1, 1)
    block: Dim3 = (1, 1, 1)
    metrics: Mapping[str, MetricValue] = field(default_factory=dict)
    nvtx: Sequence[str] = ()  # push/pop ranges of the default domain, the outermost first
    nvtx_start_end: Sequence[str] = ()  # those of a process, which belong to no thread
    later_fields: bool = False  # fields that no reader knows, as a newer version may write them


def dimensions(grid: Dim3, block: Dim3) -> dict[str, MetricValue]:
    """The metrics in which a real report says grid and block."""
    found: dict[str, MetricValue] = {}
    for kind, size in (("grid", grid), ("block", block)):
        found[f"launch__{kind}_size"] = float(math.prod(size))
        found |= {
            f"launch__{kind}_dim_{axis}": float(n) for axis, n in zip("xyz", size, strict=True)
        }
    return found


def write_report(
    path: Path,
    launches: Sequence[Launch],
    *,
    ncu_version: str | None = "2025.2.1.0 (build 0) (synthetic)",
    gpu: str | None = "NVIDIA B200 (synthetic)",
    cuda: str | None = "12.9",
    driver: str | None = "575.00",
    command_line: str | None = None,
    pad_bytes: int = 0,
) -> Path:
    """Write a whole report to `path`. What is None stays out of the session blocks.

    `pad_bytes` adds that many incompressible bytes, always the same ones, outside any launch.
    """
    versions = {
        "Nsight Compute Target": ncu_version,
        "CUDA Version": cuda,
        "Display Driver Version": driver,
    }
    session = [
        _bytes(8, _text(1, provider) + _text(2, version))  # ReportSessionDetails.VersionInfo
        for provider, version in versions.items()
        if version is not None
    ]
    if gpu is not None:  # ReportSessionDetails.DeviceAttributes: ID, Name
        session.insert(0, _bytes(6, _varint(1, 0) + _text(2, gpu)))
    session.append(_text(7, SYNTHETIC))  # ReportSessionDetails.Comments
    if command_line is not None:
        session.append(_text(11, command_line))  # ReportSessionDetails.ProfilerCmdline
    blocks = [_block(_bytes(3, details), b"") for details in session]
    if pad_bytes:
        blocks.append(_padding(pad_bytes))
    blocks += _launches(launches)
    path.write_bytes(b"NVR\0" + _sized(_varint(1, 7)) + b"".join(blocks))
    return path


def _launches(launches: Sequence[Launch]) -> list[bytes]:
    """A block each, as ncu writes them; metric names are numbered through the whole file."""
    names = sorted({name for launch in launches for name in launch.metrics})
    ids = {name: number for number, name in enumerate(names)}
    strings = _bytes(4, b"".join(_text(1, name) for name in names))
    results = [_sized(_profile_result(launch, ids)) for launch in launches]
    return [_block(strings, b""), *(_block(_varint(2, 1), result) for result in results)]


def _padding(size: int) -> bytes:
    # A source message with nothing but a field that no reader knows, which all of them skip.
    return _block(_varint(1, 1), _sized(_bytes(1000, random.Random(1).randbytes(size))))


def _block(header: bytes, payload: bytes) -> bytes:
    return _sized(header + _varint(5, len(payload))) + payload  # BlockHeader.PayloadSize


def _profile_result(launch: Launch, ids: Mapping[str, int]) -> bytes:
    if launch.name is None:
        return _varint(1, 1)  # ThreadID alone, where much more is required
    body = (
        _varint(1, 1)  # ThreadID
        + _varint(2, 1)  # APICallID
        + _varint(3, 1)  # ProgramHandle
        + _varint(4, 1)  # KernelID
        + _text(5, launch.mangled or launch.name)
        + _text(6, launch.name)
        + _text(7, launch.demangled or launch.name)
        + _varint(8, 3)  # WorkDimensions
        + _bytes(9, _dim3((0, 0, 0)))  # GlobalWorkOffset
        + _bytes(10, _dim3(launch.grid))
        + _bytes(11, _dim3(launch.block))
    )
    for name, value in launch.metrics.items():
        body += _bytes(13, _varint(1, ids[name]) + _metric_value(value))
    body += _bytes(15, b"")  # Source
    if launch.nvtx or launch.nvtx_start_end:
        body += _bytes(21, _nvtx_state(launch.nvtx, launch.nvtx_start_end))
    if launch.later_fields:
        body += _varint(901, 7) + _text(902, "of a later version") + _bytes(903, _varint(1, 1))
    return body


def _metric_value(value: MetricValue) -> bytes:
    if value is None:
        return b""
    if isinstance(value, str):
        return _bytes(2, _text(1, value))
    if isinstance(value, float):
        return _bytes(2, _key(3, 1) + struct.pack("<d", value))
    return _bytes(2, _varint(5, value))  # Uint64Value


def _nvtx_state(ranges: Sequence[str], start_end: Sequence[str]) -> bytes:
    domain = _varint(1, 0) + _text(2, "<default domain>")
    stack = _varint(1, 0) + b"".join(_bytes(3, _text(1, name)) for name in ranges)
    state = _bytes(1, domain) + _bytes(2, _varint(1, 1) + _bytes(2, stack))
    if start_end:
        open_ones = (
            _bytes(3, _varint(1, number) + _text(2, name)) for number, name in enumerate(start_end)
        )
        state += _bytes(3, _varint(1, 0) + b"".join(open_ones))
    return state


def _dim3(size: Dim3) -> bytes:
    return b"".join(_varint(number, n) for number, n in enumerate(size, start=1))


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode())


def _bytes(number: int, value: bytes) -> bytes:
    return _key(number, 2) + _base128(len(value)) + value


def _varint(number: int, value: int) -> bytes:
    return _key(number, 0) + _base128(value)


def _key(number: int, wire_type: int) -> bytes:
    return _base128(number << 3 | wire_type)


def _base128(value: int) -> bytes:
    if not 0 <= value < 2**64:
        raise ValueError(f"{value} does not fit an unsigned 64-bit field")
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])


def _sized(message: bytes) -> bytes:
    return struct.pack("<I", len(message)) + message


# What `make demo` shows without a GPU: name, label and unit in the details.
DEMO_METRICS = {
    "gpu__time_duration.sum": ("Duration", "ns"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("Compute (SM) Throughput", "%"),
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": ("Memory Throughput", "%"),
    "sm__warps_active.avg.pct_of_peak_sustained_active": ("Achieved Occupancy", "%"),
    "lts__t_sector_hit_rate.pct": ("L2 Hit Rate", "%"),
    "smsp__inst_executed.sum": ("Executed Instructions", "inst"),
    "profiler__replayer_passes": ("Replay Passes", "pass"),
}


def _demo_launch(name: str, arguments: str, grid: Dim3, block: Dim3, *values: float) -> Launch:
    measured = dict(zip(DEMO_METRICS, values, strict=True))
    return Launch(
        name=name,
        demangled=f"{name}({arguments})",
        grid=grid,
        block=block,
        metrics={**DEVICE, **dimensions(grid, block), **measured},
        nvtx=("custom_kernel",),
    )


DEMO_LAUNCHES = (
    _demo_launch(
        "vector_add_kernel", "const float *, const float *, float *, int", (4096, 1, 1), (256, 1, 1),
        184_320.0, 0.61, 1.94, 6.22, 71.35, 842_115.0, 39.0,
    ),
    _demo_launch(
        "vector_add_tail_kernel", "const float *, float *, int", (20, 4, 1), (256, 1, 1),
        96_768.0, 4.87, 7.52, 18.40, 83.12, 1_310_720.0, 39.0,
    ),
    _demo_launch(
        "fill_kernel", "const float *, float *, int", (20, 1, 1), (256, 1, 1),
        4_512.0, 0.93, 3.05, 11.87, 64.90, 48_640.0, 39.0,
    ),
)  # fmt: skip


def details_text(launches: Sequence[Launch]) -> str:
    lines = [SYNTHETIC, "GPU: NVIDIA B200 (synthetic)", ""]
    for launch in launches:
        lines.append(f"  {launch.demangled} {launch.grid}x{launch.block}, Synthetic")
        lines.append("    Section: Key metrics (synthetic)")
        lines += [
            f"    {label:<26} {unit:>6} {launch.metrics[name]:>16,}"
            for name, (label, unit) in DEMO_METRICS.items()
        ]
        lines.append("")
    return "\n".join(lines)


def details_csv(launches: Sequence[Launch]) -> str:
    out = io.StringIO()
    out.write(SYNTHETIC + "\n")
    rows = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    place_columns = ("ID", "Kernel Name", "Block Size", "Grid Size", "Section Name")
    rows.writerow((*place_columns, "Metric Name", "Metric Unit", "Metric Value"))
    for number, launch in enumerate(launches):
        place = (number, launch.demangled, launch.block, launch.grid, "Key metrics (synthetic)")
        for name, (label, unit) in DEMO_METRICS.items():
            rows.writerow((*place, label, unit, launch.metrics[name]))
    return out.getvalue()


def write_demo_archive(path: Path) -> Path:
    """The archive of one synthetic capture, the same bytes every time."""
    report = write_report(path.with_suffix(".ncu-rep"), DEMO_LAUNCHES)
    files = {
        "profile.ncu-rep": report.read_bytes(),
        "ncu-details.txt": details_text(DEMO_LAUNCHES).encode(),
        "ncu-details.csv": details_csv(DEMO_LAUNCHES).encode(),
    }
    report.unlink()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)  # dated 1980: no trace of when it was made
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the synthetic archive of the demo.")
    parser.add_argument("archive", type=Path, metavar="OUT.zip")
    print(f"{write_demo_archive(parser.parse_args().archive)}: {SYNTHETIC}")


if __name__ == "__main__":
    main()
