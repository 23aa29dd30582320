"""What every storage must do with ranges of a stored archive, asked over HTTP."""

from __future__ import annotations

from tests.server.service import Service


def check_ranges(service: Service, url: str, content: bytes) -> None:
    """`content` is the archive at `url`, longer than one read of the storage."""
    size = len(content)
    for asked, first, last in (
        ("bytes=0-0", 0, 0),
        ("bytes=5-14", 5, 14),
        (f"bytes={size // 2}-", size // 2, size - 1),
        ("bytes=-7", size - 7, size - 1),
        (f"bytes=1-{size * 2}", 1, size - 1),
        (f"bytes=-{size * 2}", 0, size - 1),
    ):
        with service.client() as client:
            answer = client.get(url, headers={"Range": asked})
        assert answer.status_code == 206, asked
        assert answer.headers["Content-Range"] == f"bytes {first}-{last}/{size}"
        assert int(answer.headers["Content-Length"]) == last - first + 1
        assert answer.content == content[first : last + 1]
