"""What a stranger's kernel calls itself stays text, wherever a result is told in words.

Markdown is read here as chats and code hosts read it, by a parser that is not ours.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from profiling.models import CaptureDetails
from profiling.reports.details import Finding, FindingKind, HotSpot, pack, unpack
from profiling.wire_result import build_result
from runners.gpu.contract import FailureKind
from tests.profiling.envelopes import a_failure, a_launch
from tests.profiling.test_stream_results import line_of

LIST = "/api/profile-requests/"
ALICE = {"X-Popcorn-Cli-Id": "alice-cli-id"}
ATTACKS = (
    "k`|x|`</code><script>alert(1)</script>",
    "``` \n# heading\n\n- item\n| a | b |\n",
    "[click](javascript:alert(1)) ![x](http://evil.example/x.png) <http://evil.example>",
    "**bold** \\`*a*\\` &lt;b&gt; <!-- \\",
    "| --- | --- |",
    "> quote",
    "k\x1b[2J\x1b]0;owned\x07\x9b31m\x7f\u202egnp\u2066\u2028",
)
# Escapes of terminals, and what turns or breaks a line.
UNFIT = [*map(chr, [*range(9), *range(11, 32), *range(127, 160)]), *"\u202e\u2066\u2028"]
READER = MarkdownIt("commonmark", {"html": True}).enable("table")
# What a summary of ours is made of; anything else is a stranger's.
BLOCKS = {
    *("heading", "paragraph", "bullet_list", "list_item", "inline"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
INLINE = {"text", "text_special", "code_inline", "strong", "softbreak"}


def kinds_of(tokens):
    return {token.type.removesuffix("_open").removesuffix("_close") for token in tokens}


def assert_only_ours(text, *, headings, rows):
    tokens = READER.parse(text)
    types = [token.type for token in tokens]

    assert not [char for char in UNFIT if char in text]
    assert kinds_of(tokens) <= BLOCKS
    assert kinds_of(child for token in tokens for child in token.children or ()) <= INLINE
    assert types.count("heading_open") == headings
    assert (types.count("th_open"), types.count("td_open")) == ((11, 11 * rows) if rows else (0, 0))


@pytest.fixture(params=ATTACKS, ids=range(len(ATTACKS)))
def attack(request):
    return request.param


@pytest.fixture
def attacked(measure, alice, attack):
    """A capture whose kernel, rules and hot spots are all called like that."""
    request = measure(alice, [a_launch(attack), a_launch("harmless")])
    finding = Finding(
        **dict.fromkeys(("section", "rule", "name", "title", "message"), attack),
        kind=FindingKind.OPT,
        speedup=5.0,
        speedup_kind="global",
    )
    spot = HotSpot(
        **dict.fromkeys(("sass", "file", "source"), attack),
        offset=16,
        samples=5,
        instructions=5,
        stalls={"wait": 5},
        line=3,
    )
    kept = CaptureDetails.objects.get()
    details = unpack(kept.content, kept.schema)
    launches = [
        replace(launch, findings=(finding,), hot_spots=(spot,)) for launch in details.launches
    ]
    kept.content = pack(replace(details, launches=tuple(launches))).content
    kept.save()
    return request


def test_a_summary_in_markdown_has_no_markup_of_a_stranger(attacked, client):
    text = client.get(f"{LIST}{attacked.pk}/summary.md", headers=ALICE).content.decode()

    assert "harmless" in text
    assert_only_ours(text, headings=3, rows=2)


def test_the_result_s_report_has_no_markup_of_a_stranger(attacked):
    document = json.loads(line_of(build_result(attacked, list(attacked.captures.all()))))

    assert_only_ours(document["reports"][0], headings=3, rows=2)


def test_why_there_is_no_capture_is_told_without_markup_or_escapes(measure, alice, attack, client):
    record = a_failure(FailureKind.EVALUATOR_FAILED, f"It printed:\n{attack}")
    request = measure(alice, record=record)

    result = build_result(request, list(request.captures.all()))
    text = client.get(f"{LIST}{request.pk}/summary.md", headers=ALICE).content.decode()

    assert_only_ours(text, headings=2, rows=0)
    assert result.messages
    assert not [char for said in result.messages for char in UNFIT if char in said]
    assert any("It printed:\n" in said for said in result.messages)
