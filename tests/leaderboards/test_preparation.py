from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from leaderboards.exceptions import SubmissionRefused
from leaderboards.models import ClientId, Invite, Leaderboard
from leaderboards.preparation import Prepared, prepare, read_mode
from runners.gpu.contract import Mode

GOOD = b"def custom_kernel(data):\n    return data\n"


@pytest.fixture
def send(alice, rowsum):
    def call(**changes: Any) -> Prepared:
        fields: dict[str, Any] = {
            "user": alice,
            "leaderboard_name": "rowsum",
            "gpu_name": "B200",
            "mode": Mode.PROFILE,
            "file_name": "submission.py",
            "content": GOOD,
        }
        return prepare(**fields | changes)

    return call


def refusal(call: Any, **changes: Any) -> tuple[str, int, str]:
    with pytest.raises(SubmissionRefused) as caught:
        call(**changes)
    return caught.value.code, caught.value.http_status, str(caught.value)


def test_a_good_submission_becomes_runnable(send, rowsum):
    prepared = send()

    assert prepared.leaderboard == rowsum
    assert prepared.revision == rowsum.current_revision
    assert prepared.gpu.name == "B200"
    assert (prepared.file_name, prepared.text) == ("submission.py", GOOD.decode())
    assert prepared.selected == (0, 1, 2)


def test_names_are_taken_in_any_case(send):
    prepared = send(leaderboard_name="RowSum", gpu_name="b200")

    assert (prepared.leaderboard.name, prepared.gpu.name) == ("rowsum", "B200")


@pytest.mark.parametrize(
    ("content", "code", "status", "words"),
    [
        (b"", "empty_file", 400, "empty"),
        (b"#" * 1_000_001, "file_too_large", 413, "at most 1,000,000"),
        ("x = 1\n".encode("utf-16"), "not_utf8", 400, "UTF-16"),
        (b"\x89PNG\r\n\x1a\n", "not_utf8", 400, "PNG"),
        (b"PK\x03\x04\xff", "not_utf8", 400, "zip"),
        (b"x = '\xe4'\n", "not_utf8", 400, "byte 5"),
        (b"x = 1\ny = '\0'\n", "nul_bytes", 400, "line 2"),
        (b"x = 1\n".replace(b"\n", b"\0\n\0"), "nul_bytes", 400, "line 1"),
    ],
)
def test_fr_26_a_broken_upload_is_refused_with_its_reason(send, content, code, status, words):
    got_code, got_status, message = refusal(send, content=content)

    assert (got_code, got_status) == (code, status)
    assert words in message


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf#!POPCORN leaderboard rowsum\r\nx = 1\r\n",
        b"#" * 1_000_000,
        "ä = 1\n".encode(),
    ],
    ids=["BOM and CRLF", "exactly the limit", "not ASCII"],
)
def test_fr_26_documented_odd_uploads_are_accepted_unchanged(send, content):
    assert send(content=content).text.encode() == content


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    ("changes", "code", "status"),
    [
        ({"leaderboard_name": "nothing"}, "unknown_leaderboard", 404),
        ({"leaderboard_name": "row\0sum"}, "unknown_leaderboard", 404),
        ({"leaderboard_name": "rowsum\n"}, "unknown_leaderboard", 404),
        ({"leaderboard_name": "r" * 5000}, "unknown_leaderboard", 404),
        ({"leaderboard_name": "row\ud800sum"}, "unknown_leaderboard", 404),
        ({"file_name": "kernel.txt"}, "wrong_extension", 400),
        ({"file_name": "kernel.PY"}, "wrong_extension", 400),
        ({"file_name": "kernel"}, "wrong_extension", 400),
        ({"file_name": ".."}, "wrong_extension", 400),
        ({"file_name": "a" * 253 + ".py"}, "bad_file_name", 400),
        ({"file_name": "a\nb.py"}, "bad_file_name", 400),
        ({"file_name": "a\0.py"}, "bad_file_name", 400),
        ({"file_name": "a\ud800.py"}, "bad_file_name", 400),
        ({"content": b"#!POPCORN\n"}, "bad_directive", 400),
        ({"content": b"#!POPCORN leaderboard other\n"}, "directive_conflict", 400),
    ],
)
def test_every_mode_refuses_alike(send, mode, changes, code, status):
    assert refusal(send, mode=mode, **changes)[:2] == (code, status)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("", "submission.py"),
        ("kernel.cu", "kernel.cu"),
        ("kernel.cuh", "kernel.cuh"),
        ("kernel.cpp", "kernel.cpp"),
        ("/home/me/kernel.py", "kernel.py"),
        ("C:\\me\\kernel.py", "kernel.py"),
        ("../../kernel.py", "kernel.py"),
        ("a" * 252 + ".py", "a" * 252 + ".py"),
        ("Kern für B200.py", "Kern für B200.py"),
    ],
)
def test_only_the_base_name_of_a_file_is_kept(send, given, kept):
    assert send(file_name=given).file_name == kept


@pytest.mark.parametrize("name", ["H200", "MI300", "L4x4", "", "x" * 5000])
def test_a_gpu_that_the_leaderboard_does_not_offer_is_refused_with_those_that_it_does(send, name):
    code, status, message = refusal(send, mode=Mode.TEST, gpu_name=name)

    assert (code, status) == ("gpu_not_offered", 400)
    assert "B200, H100, CPU" in message
    assert len(message) < 300


def test_a_gpu_of_the_leaderboard_that_no_runner_serves_is_not_offered(send, rowsum):
    rowsum.gpu_types = ["B200", "GB300"]
    rowsum.save()

    code, _, message = refusal(send, mode=Mode.TEST, gpu_name="GB300")

    assert code == "gpu_not_offered"
    assert message.endswith("it is on: B200")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("MI300", "not an NVIDIA GPU"),
        ("cpu", "not an NVIDIA GPU"),
        ("l4x4", "4 devices"),
        ("H900", "no GPU 'H900'"),
    ],
)
def test_a_profile_needs_a_single_nvidia_gpu_and_that_is_said_before_the_leaderboard(
    send, name, words
):
    code, status, message = refusal(send, gpu_name=name, leaderboard_name="nothing")

    assert (code, status) == ("gpu_not_profilable", 400)
    assert words in message
    assert "offered on: B200, H100" in message


def test_an_nvidia_gpu_on_which_profiling_is_switched_off_is_said_to_be_one(send, settings):
    """FR-08: what the operator decided is not told as what the GPU is."""
    gpu = settings.GPU_TYPES["H100"]
    settings.GPU_TYPES = settings.GPU_TYPES | {"H100": replace(gpu, ncu=False)}

    _, _, message = refusal(send, gpu_name="H100")

    assert message.startswith("profiling is not offered on H100; profiling is offered on: B200")


def test_a_banned_person_is_refused_with_the_reason(send, alice):
    alice.banned_at, alice.ban_reason = timezone.now(), "sold their kernels"

    code, status, message = refusal(send)

    assert (code, status) == ("banned", 403)
    assert "sold their kernels" in message


def test_a_submission_after_the_deadline_is_refused_and_one_at_it_is_not(send, rowsum):
    deadline = rowsum.deadline

    assert send(now=deadline).leaderboard == rowsum
    late = deadline + timedelta(seconds=1)
    assert refusal(send, now=late)[:2] == ("deadline_passed", 400)
    assert send(now=late, ignore_deadline=True).leaderboard == rowsum


@pytest.fixture
def invited(rowsum, alice):
    """rowsum is closed, and alice has claimed an invite to it."""
    rowsum.visibility = Leaderboard.Visibility.CLOSED
    rowsum.save()
    invite = Invite.objects.create(code="c" * 16, claimed_by=alice, claimed_at=timezone.now())
    invite.leaderboards.add(rowsum)
    return invite


def test_a_closed_leaderboard_takes_submissions_of_the_invited_and_of_operators(
    send, invited, bob, olga, make_leaderboard
):
    other = make_leaderboard("other", visibility="closed")

    assert send().leaderboard == send(user=olga).leaderboard
    for changes in ({"user": bob}, {"leaderboard_name": other.name}):
        code, status, message = refusal(send, **changes)
        assert (code, status) == ("closed_leaderboard", 403)
        assert "invite" in message


def test_a_closed_leaderboard_takes_nothing_from_a_browser(send, invited):
    code, status, message = refusal(send, via=ClientId.Kind.WEB)

    assert (code, status) == ("closed_leaderboard", 403)
    assert "CLI" in message


def test_a_revoked_invite_opens_nothing(send, invited):
    invited.revoked_at = timezone.now()
    invited.save()

    assert refusal(send)[:2] == ("closed_leaderboard", 403)


def test_a_deleted_leaderboard_is_unknown(send, rowsum):
    rowsum.deleted_at = timezone.now()
    rowsum.save()

    assert refusal(send)[:2] == ("unknown_leaderboard", 404)


def test_a_leaderboard_without_a_task_says_so(send, rowsum):
    rowsum.current_revision = None
    rowsum.save()

    assert refusal(send)[:2] == ("no_task", 409)


def test_a_directive_names_the_leaderboard_in_any_case_and_the_gpu_of_the_path_wins(send):
    prepared = send(content=b"#!POPCORN leaderboard RowSum\n#!POPCORN gpus H100 T4\nx = 1\n")

    assert prepared.gpu.name == "B200"


@pytest.mark.parametrize("line", ["# feeds the downstream op", "bitstream = 1"])
def test_fr_17_harmless_words_are_no_reason_to_refuse(send, line):
    assert send(content=f"{line}\n".encode()).text == f"{line}\n"


@pytest.mark.parametrize(("index", "selected"), [(None, (0, 1, 2)), (0, (0,)), (2, (2,))])
def test_fr_07_an_index_chooses_one_shape_and_none_takes_all(send, index, selected):
    assert send(benchmark_index=index).selected == selected


@pytest.mark.parametrize("index", [3, -1, 10**30])
def test_fr_07_an_index_out_of_range_is_refused_naming_the_range(send, index):
    code, status, message = refusal(send, benchmark_index=index)

    assert (code, status) == ("benchmark_index_out_of_range", 400)
    assert "valid are 0 to 2" in message


def test_fr_07_a_leaderboard_that_ranks_by_the_last_shape_still_profiles_all(
    send, make_leaderboard
):
    make_leaderboard("last", task={"ranking_by": "last"})
    make_leaderboard("geom", task={"ranking_by": "geom"})

    def selected(name: str, mode: Mode) -> tuple[int, ...]:
        return send(leaderboard_name=name, mode=mode).selected

    assert selected("last", Mode.PROFILE) == (0, 1, 2)
    assert selected("last", Mode.LEADERBOARD) == selected("last", Mode.BENCHMARK) == (2,)
    assert selected("geom", Mode.LEADERBOARD) == (0, 1, 2)
    assert selected("geom", Mode.TEST) == ()


def test_fr_08_a_multi_gpu_task_is_not_profiled(send, make_leaderboard):
    benchmarks = ({"size": 1, "world_size": 4},)
    make_leaderboard("spread", task={"multi_gpu": True, "benchmarks": benchmarks})

    code, status, message = refusal(send, leaderboard_name="spread")

    assert (code, status) == ("multi_gpu_task", 400)
    assert message == "profiling is not offered for multi-GPU tasks"


def test_a_task_without_benchmarks_is_not_profiled(send, make_leaderboard):
    make_leaderboard("testsonly", task={"benchmarks": ()})

    assert refusal(send, leaderboard_name="testsonly")[:2] == ("no_benchmarks", 400)


@pytest.mark.parametrize("word", ["test", "Benchmark", "LEADERBOARD", "profile"])
def test_a_mode_is_read_in_any_case(word):
    assert read_mode(word) == word.lower()


@pytest.mark.parametrize("word", ["private", "Private", "script", "", "tes"])
def test_another_mode_is_refused_with_those_that_are_offered(word):
    code, status, message = refusal(lambda: read_mode(word))

    assert (code, status) == ("unknown_mode", 400)
    assert "test, benchmark, leaderboard, profile" in message
    assert ("private" in message) == (word.lower() == "private")
