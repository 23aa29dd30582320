"""Archives from a stranger's container are looked into before they are opened."""

from __future__ import annotations

import io
import zipfile

import pytest

from profiling.reports import archives
from profiling.reports.archives import DETAILS_CSV, DETAILS_TEXT, REPORT, unpack_report


def zipped(*members, compression=zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return out.getvalue()


def with_flag(content: bytes, offset_local: int, offset_central: int, value: int) -> bytes:
    """The archive with a number of its entry changed, in the local and the central header."""
    changed = bytearray(content)
    for signature, offset in ((b"PK\3\4", offset_local), (b"PK\1\2", offset_central)):
        at = content.index(signature) + offset
        changed[at : at + 2] = value.to_bytes(2, "little")
    return bytes(changed)


WHOLE = zipped((REPORT, b"report"), (DETAILS_TEXT, b"text"), (DETAILS_CSV, b"a,b"))


def test_the_report_is_written_and_the_exports_come_back_by_name(tmp_path):
    (tmp_path / "whole.zip").write_bytes(WHOLE)
    exports = unpack_report(tmp_path / "whole.zip", tmp_path / "whole.ncu-rep")
    (tmp_path / "alone.zip").write_bytes(zipped((REPORT, b"report")))
    none = unpack_report(tmp_path / "alone.zip", tmp_path / "alone.ncu-rep")

    assert (tmp_path / "whole.ncu-rep").read_bytes() == b"report"
    assert exports == {DETAILS_TEXT: b"text", DETAILS_CSV: b"a,b"}
    assert none == {}


HOSTILE = {
    "nothing": (b"", "does not end as a zip"),
    "no zip": (b"x" * 1000, "does not end as a zip"),
    "cut": (WHOLE[:-1], "does not end as a zip"),
    "a comment behind the end": (WHOLE[:-2] + b"\5\0hello", "does not end as a zip"),
    "ZIP64": (WHOLE[:-22] + b"PK\6\7" + bytes(16) + WHOLE[-22:], "ZIP64"),
    "eleven files": (zipped(*((f"{n}.txt", b"") for n in range(11))), "11 files"),
    "a directory of 70 kB": (zipped((REPORT, b""), ("n" * 65_500, b"")), "2 files, at most"),
    "another file": (zipped((REPORT, b""), ("setup.py", b"")), "none of ours: 'setup.py'"),
    "a path": (zipped((f"../{REPORT}", b"")), "none of ours: '../profile.ncu-rep'"),
    "no report": (zipped((DETAILS_TEXT, b"")), "holds no profile.ncu-rep"),
    "encrypted": (with_flag(zipped((REPORT, b"r")), 6, 8, 1), "encrypted"),
    "bzip2": (zipped((REPORT, b"r"), compression=zipfile.ZIP_BZIP2), "compressed in a way"),
    "a wrong checksum": (WHOLE.replace(b"PK\3\4", b"PK\3\5"), "damaged: BadZipFile"),
    "an unknown version": (with_flag(zipped((REPORT, b"r")), 4, 6, 99), "damaged: NotImplemented"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "told"), HOSTILE.values(), ids=HOSTILE)
def test_an_archive_that_is_none_of_ours_is_refused(tmp_path, content, told):
    (tmp_path / "hostile.zip").write_bytes(content)

    with pytest.raises(archives.ArchiveError, match=told.replace("(", r"\(")):
        unpack_report(tmp_path / "hostile.zip", tmp_path / "report")


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_a_file_that_is_there_twice_is_refused(tmp_path):
    (tmp_path / "twice.zip").write_bytes(zipped((REPORT, b"one"), (REPORT, b"two")))

    with pytest.raises(archives.ArchiveError, match="a file twice"):
        unpack_report(tmp_path / "twice.zip", tmp_path / "report")


def test_a_report_out_of_nearly_nothing_is_refused_if_it_is_large(tmp_path):
    """FR-04: a small one is padded, and harmless."""
    (tmp_path / "small.zip").write_bytes(zipped((REPORT, bytes(2**20))))
    unpack_report(tmp_path / "small.zip", tmp_path / "small")
    (tmp_path / "bomb.zip").write_bytes(zipped((REPORT, bytes(archives.RATIO_MATTERS_FROM + 1))))

    with pytest.raises(archives.ArchiveError, match="out of nearly nothing"):
        unpack_report(tmp_path / "bomb.zip", tmp_path / "bomb")

    assert (tmp_path / "small").stat().st_size == 2**20
    assert not (tmp_path / "bomb").exists()


def test_more_than_the_cap_is_not_unpacked(tmp_path):
    """What the directory says counts, before a byte of it is written."""
    content = bytearray(zipped((REPORT, b"r" * 10_000), compression=zipfile.ZIP_STORED))
    at = content.index(b"PK\1\2")
    for offset in (20, 24):  # compressed and plain size
        content[at + offset : at + offset + 4] = (archives.MAX_UNPACKED_BYTES + 1).to_bytes(
            4, "little"
        )
    (tmp_path / "huge.zip").write_bytes(content)

    with pytest.raises(archives.ArchiveError, match="holds more than"):
        unpack_report(tmp_path / "huge.zip", tmp_path / "report")
