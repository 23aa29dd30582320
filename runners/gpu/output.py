"""Keep a bounded part of what a program writes, and make safe text of it."""

from __future__ import annotations


class HeadAndTail:
    """The first and the last bytes of a stream, `limit` in all, and how many there were."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, piece: bytes) -> None:
        self.total += len(piece)
        room = self._half - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:]
        # Trimmed only now and then, so that a flood of small pieces does not copy each time.
        if len(self._tail) > 4 * self._half + 2**16:
            del self._tail[: len(self._tail) - self._half]

    def text(self) -> str:
        """What was kept, with a line that says so where bytes are missing."""
        if self.total <= 2 * self._half:
            return safe_text(bytes(self._head + self._tail))
        tail = self._tail[len(self._tail) - self._half :]
        head = safe_text(bytes(self._head))
        return f"{head}\n[cut, {self.total} bytes in all]\n{safe_text(bytes(tail))}"


class Head:
    """The first `limit` bytes of a stream; the rest is read and dropped, so nobody blocks."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.content = bytearray()
        self.cut = False

    def add(self, piece: bytes) -> None:
        room = self._limit - len(self.content)
        self.content += piece[:room]
        self.cut = self.cut or len(piece) > room


def safe_text(content: bytes) -> str:
    """Decoded with replacement, and without NUL, which PostgreSQL refuses."""
    return content.decode("utf-8", errors="replace").replace("\0", "")


def shorten(text: str, limit: int) -> str:
    """At most about `limit` bytes of a text, its head and its tail."""
    kept = HeadAndTail(limit)
    kept.add(text.encode())
    return kept.text()
