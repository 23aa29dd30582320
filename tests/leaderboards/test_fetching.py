"""Fetching a repository by command, and the rules of where it may come from."""

from __future__ import annotations

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command

from leaderboards.fetching.clock import Clock
from leaderboards.fetching.exceptions import BadBranch, FetchTimedOut, RepositoryNotAllowed
from leaderboards.fetching.repositories import find_source
from leaderboards.models import Leaderboard
from tests.server.operators.problems import commit_files, problem_files


@pytest.fixture
def repository(settings, tmp_path):
    """Its address and its commit."""
    commit = commit_files(tmp_path / "problems.git", problem_files())
    address = f"file://{tmp_path / 'problems.git'}"
    settings.PROBLEM_REPOSITORIES = [address]
    settings.PROBLEM_SCHEMES = ["file"]
    return address, commit


@pytest.mark.django_db
def test_the_command_syncs_a_repository(repository, capsys):
    address, commit = repository

    call_command("sync_problems", repository=address, branch="main", closed=True)

    board = Leaderboard.objects.select_related("current_revision").get(name="rowsum_demo")
    assert (board.visibility, board.current_revision.commit) == ("closed", commit)
    assert f"commit: {commit}" in capsys.readouterr().out


@pytest.mark.django_db
def test_the_command_says_why_nothing_could_be_fetched(repository):
    address, _ = repository

    with pytest.raises(CommandError, match="has no branch 'nothing'"):
        call_command("sync_problems", repository=address, branch="nothing")
    with pytest.raises(CommandError, match="PROBLEM_REPOSITORIES"):
        call_command("sync_problems", repository="some/body", branch="main")
    assert not Leaderboard.objects.exists()


@pytest.mark.django_db
def test_a_time_limit_holds_for_git_too(repository, settings):
    settings.PROBLEM_FETCH_LIMIT_S = 0

    with pytest.raises(CommandError, match="within 0 seconds"):
        call_command("sync_problems", repository=repository[0], branch="main")


def test_one_of_directory_and_repository_is_needed():
    with pytest.raises(CommandError):
        call_command("sync_problems")
    with pytest.raises(CommandError):
        call_command("sync_problems", "examples", "--repository", "a/b")


def test_names_on_github_are_taken_in_any_case_and_come_as_archives(settings):
    source = find_source("GPU-Mode/Reference-Kernels", "feature/ä#1")

    assert source.is_archive
    assert source.address == (
        "https://codeload.github.com/GPU-Mode/Reference-Kernels/zip/refs/heads/feature/%C3%A4%231"
    )


@pytest.mark.parametrize(
    ("repository", "words"),
    [
        ("https://github.com/gpu-mode/other", "PROBLEM_REPOSITORIES"),
        ("https://github.com.evil.example/a", "PROBLEM_HOSTS"),
        ("https://github.com:444/a", "PROBLEM_HOSTS"),
        ("https://github.com@evil.example/a", "PROBLEM_HOSTS"),
        ("https://me:token@github.com/a", "PROBLEM_HOSTS"),
        ("http://github.com/a", "PROBLEM_SCHEMES"),
        ("file:///etc", "PROBLEM_SCHEMES"),
        ("ext::sh -c touch% /tmp/x", "PROBLEM_SCHEMES"),
        ("git@github.com:a/b.git", "PROBLEM_SCHEMES"),
        ("--upload-pack=x", "PROBLEM_SCHEMES"),
        ("../../etc", "PROBLEM_SCHEMES"),
    ],
)
def test_an_address_must_be_allowed_and_its_host_as_well(settings, repository, words):
    if words != "PROBLEM_REPOSITORIES":
        settings.PROBLEM_REPOSITORIES = [repository]

    with pytest.raises(RepositoryNotAllowed, match=words):
        find_source(repository, "main")


@pytest.mark.parametrize("branch", ["main", "feature/x", "v1.2", "user/a-b_c", "ümlaut", "a@b"])
def test_names_of_branches_are_taken(branch):
    assert find_source("gpu-mode/reference-kernels", branch).branch == branch


@pytest.mark.parametrize(
    "branch",
    ["", "-x", "a b", "a..b", "a//b", "/a", "a/", "a.", "a/.b", "@{1}", "a~1", "a\n", "x" * 201],
)
def test_what_cannot_be_a_branch_is_refused(branch):
    with pytest.raises(BadBranch):
        find_source("gpu-mode/reference-kernels", branch)


def test_a_clock_that_ran_out_says_so():
    assert Clock.start(60).left() > 0
    with pytest.raises(FetchTimedOut):
        Clock.start(-1).left()


@pytest.mark.django_db  # another check asks for it
def test_another_scheme_than_https_is_refused_at_the_start(settings):
    settings.PROBLEM_SCHEMES = ["https", "http"]
    settings.DEBUG = False

    ids = [error.id for error in run_checks()]

    assert [each for each in ids if each.startswith("leaderboards.")] == ["leaderboards.E005"]
