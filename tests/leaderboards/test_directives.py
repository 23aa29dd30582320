from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboards.directives import Directives, read_directives
from leaderboards.exceptions import BadDirective


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", Directives()),
        ("x = 1\n#!POPCORN leaderboard late\n", Directives()),
        ("# a comment\n\n#!POPCORN leaderboard late\n", Directives()),
        ("#!POPCORN leaderboard rowsum", Directives(leaderboard="rowsum")),
        ("//!POPCORN LEADERBOARD RowSum\n", Directives(leaderboard="RowSum")),
        ("\ufeff#!POPCORN gpu B200\r\n", Directives(gpus=("B200",))),
        ("#!/usr/bin/env python\r#!POPCORN gpus B200 H100\r", Directives(gpus=("B200", "H100"))),
        (" #!POPCORN leaderboard indented\n", Directives()),
        ("# !POPCORN is only a word here\n", Directives()),
        ("#\n//\n#!POPCORN gpu T4\n", Directives(gpus=("T4",))),
    ],
)
def test_directives_are_read_from_the_first_block_of_comments(text, found):
    assert read_directives(text) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#!POPCORN\n", "line 1: !POPCORN needs a key and a value"),
        ("# x\r\n#!POPCORN gpu\r\n", "line 2: the !POPCORN directive 'gpu' has no value"),
        ("//\n//\n//!POPCORN board x\n", "line 3: unknown !POPCORN directive 'board'"),
        (
            "#!POPCORN gpu A\n#!POPCORN gpus B\n",
            "line 2: the !POPCORN directive 'gpus' is repeated",
        ),
        (
            "#!POPCORN leaderboard a\n#!POPCORN Leaderboard a\n",
            "line 2: the !POPCORN directive 'Leaderboard' is repeated",
        ),
    ],
)
def test_a_bad_directive_is_refused_naming_its_line(text, words):
    with pytest.raises(BadDirective) as caught:
        read_directives(text)

    assert str(caught.value).startswith(words)


words = st.sampled_from(
    ["#", "//", "#!POPCORN", "//!POPCORN", "gpu", "leaderboard", "\n", " ", "\r"]
)


@given(st.lists(st.one_of(words, st.text(max_size=5))).map("".join))
def test_any_text_is_read_or_refused_in_words(text):
    refused = ""
    found = Directives(leaderboard="never read")
    try:
        found = read_directives(text)
    except BadDirective as error:
        refused = str(error)

    assert refused.startswith("line ") or found.leaderboard in {None, *text.split()}


@given(st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True), st.integers(0, 5))
def test_a_directive_is_found_below_any_number_of_comments(name, above):
    text = "# comment\n" * above + f"#!POPCORN leaderboard {name}\nimport torch\n"

    assert read_directives(text).leaderboard == name
