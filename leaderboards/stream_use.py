"""Where a submission works on a CUDA stream of its own: something to warn of, not to refuse (FR-17).

Work on another stream can escape the evaluator's clock. Comments and strings are no code, and
neither are "upstream" or the current stream. Nothing is parsed: a hostile file must not be able to
exhaust a parser's stack, and a file in which the search fails merely gets no warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_PYTHON_LITERAL = re.compile(
    r"""\#[^\n]*"""
    r'''|"""(?:\\.|[^\\])*?(?:"""|\Z)'''
    r"""|'''(?:\\.|[^\\])*?(?:'''|\Z)"""
    r"""|"(?:\\.|[^"\\\n])*"?"""
    r"""|'(?:\\.|[^'\\\n])*'?""",
    re.DOTALL,
)
_C_LITERAL = re.compile(
    r"""//[^\n]*"""
    r"""|/\*.*?(?:\*/|\Z)"""
    r"""|R"([^\s()\\"]{0,16})\(.*?(?:\)\1"|\Z)"""
    r"""|"(?:\\.|[^"\\\n])*"?"""
    r"""|'(?:\\.|[^'\\\n])*'?""",
    re.DOTALL,
)
_PYTHON_USE = re.compile(
    r"\bcuda\s{0,9}\.\s{0,9}(?:Stream|ExternalStream|stream)\s{0,9}\("
    r"|\btorch\s{0,9}\.\s{0,9}Stream\s{0,9}\("
    r"|\bfrom\s{1,9}(?:torch|cupy)\s{0,9}\.\s{0,9}cuda\s{1,9}import\b[^\n]{0,200}?\b(?:Stream|ExternalStream|stream)\b"
)
_C_USE = re.compile(
    r"\b(?:cudaStreamCreate|cuStreamCreate|hipStreamCreate)\w*\s*\(|\bgetStreamFromPool\s*\("
)
# A string of Python that is a program for nvcc (torch's load_inline and its like).
_INLINE_CUDA = re.compile(
    r"#\s*include\b|__global__|__device__|\bcuda[A-Z]\w+\s*\([^)]{0,200}\)\s*;"
)


@dataclass(frozen=True, slots=True)
class StreamUse:
    """`code` as written, in a line that counts from 1."""

    line: int
    code: str


def find_stream_use(file_name: str, text: str) -> list[StreamUse]:
    """Every place where a stream of its own is made or entered, in the order of the file."""
    found = _find_python(text) if file_name.endswith(".py") else _find_c(text)
    uses, line, counted = [], 1, 0
    for start, code in sorted(found):
        line, counted = line + text.count("\n", counted, start), start
        uses.append(StreamUse(line, re.sub(r"\s+", " ", code).rstrip(" (")))
    return uses


def warn_of_stream_use(file_name: str, text: str) -> str:
    """One sentence for the person who sent it, empty when there is nothing to warn of."""
    uses = find_stream_use(file_name, text)
    if not uses:
        return ""
    first = uses[0]
    more = f" and {len(uses) - 1} more" if len(uses) > 1 else ""
    return (
        f"Warning: this submission uses a CUDA stream of its own ({first.code} in line "
        f"{first.line}{more}). Work on another stream may be missed by the timing, and may "
        "disqualify the submission."
    )


def _find_python(text: str) -> Iterator[tuple[int, str]]:
    yield from _matches(_PYTHON_USE, _without(_PYTHON_LITERAL, text))
    for literal in _PYTHON_LITERAL.finditer(text):
        inside = literal[0]
        if inside.startswith(('"""', "'''")) and _INLINE_CUDA.search(inside):
            inner = inside[3:].removesuffix(inside[:3])
            yield from ((literal.start() + 3 + at, code) for at, code in _find_c(inner))


def _find_c(text: str) -> Iterator[tuple[int, str]]:
    return _matches(_C_USE, _without(_C_LITERAL, text))


def _matches(pattern: re.Pattern[str], code: str) -> Iterator[tuple[int, str]]:
    return ((match.start(), match[0]) for match in pattern.finditer(code))


def _without(literal: re.Pattern[str], text: str) -> str:
    """The text with blanks in the place of comments and strings, so that places stay the same."""
    return literal.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
