"""POST /admin/update-problems: real archives over HTTP, a real git repository, and bad days."""

from __future__ import annotations

import stat
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.server.operators.conftest import FETCH_LIMIT_S
from tests.server.operators.problems import (
    COMMIT,
    COMPETITION,
    TASK,
    commit_files,
    git,
    problem_files,
    zipped,
)
from tests.server.service import wait_for
from tests.wire import assert_shape, example

REPOSITORY = "gpu-mode/reference-kernels"


@pytest.fixture
def update(admin):
    def ask(**changed):
        order = {"repository": REPOSITORY, "branch": "main", "force": False}
        return admin.post("/admin/update-problems", json=order | changed)

    return ask


@pytest.fixture
def board(desk):
    """A standing leaderboard with its current revision, by name."""

    def read(name):
        (row,) = desk.rows(
            "SELECT b.*, r.* FROM leaderboards_leaderboard b"
            " JOIN leaderboards_taskrevision r ON r.id = b.current_revision_id"
            " WHERE b.name = ? AND b.deleted_at IS NULL",
            name,
        )
        return row

    return read


def renamed(name, **changed):
    """The problems under names of their own, since leaderboards stay between tests."""
    competition = COMPETITION.replace("rowsum_demo", name).replace("transpose_demo", f"{name}2")
    return problem_files(**{"problems/demo.yaml": competition} | changed)


def test_an_archive_is_synced_and_its_commit_recorded(update, archives, board, desk, audited):
    archives.serve(zipped(renamed("arch")))

    first, second = update(), update()
    archives.serve(
        zipped(renamed("arch", **{"problems/demo.yaml": COMPETITION.replace("rowsum_demo", "arch")
                                  .replace("transpose_demo", "arch2").replace("2030-01-31", "2031-01-31")
                                  .replace("directory: transpose_py", "directory: gone")}))
    )  # fmt: skip
    third = update()

    for answer in (first, second, third):
        assert answer.status_code == 200, answer.text
    assert first.json()["created"] == ["arch", "arch2"]
    assert [each["name"] for each in second.json()["skipped"]] == ["arch", "arch2"]
    assert third.json()["updated"] == ["arch"]
    assert third.json()["errors"][0]["name"] == "arch2"
    assert "problems/gone/task.yml" in third.json()["errors"][0]["error"]
    merged = {name: value or second.json()[name] for name, value in third.json().items()}
    assert_shape(merged, example("admin-update-problems.json"))
    assert board("arch")["commit"] == COMMIT
    assert board("arch")["repository"] == f"https://github.com/{REPOSITORY}"
    assert board("arch")["directory"] == "problems/rowsum_py"
    assert {row["actor_label"] for row in audited("leaderboard.created")} == {"admin token"}


def test_branches_with_slashes_are_fetched(update, archives, desk, audited):
    """The reference refuses them."""
    archives.serve(zipped(renamed("slash")), branch="feature/new problems#2".replace(" ", "-"))

    answer = update(branch="feature/new-problems#2")

    assert answer.json()["created"] == ["slash", "slash2"]
    assert [path for path, _ in archives.asked] == [
        f"/{REPOSITORY}/zip/refs/heads/feature/new-problems#2"
    ]


def test_a_set_can_be_chosen_new_leaderboards_closed_and_changes_forced(
    update, archives, board, admin
):
    files = renamed("forced") | {"problems/other.yaml": COMPETITION}
    archives.serve(zipped(files))
    first = update(problem_set="demo", visibility="closed")
    changed = renamed("forced", **{"problems/rowsum_py/eval.py": "CHANGED = 1\n"})
    archives.serve(zipped(changed))

    held, forced = update(problem_set="demo"), update(problem_set="demo", force=True)

    assert first.json()["created"] == ["forced", "forced2"]
    assert admin.get("/gpus/forced").status_code == 401
    assert held.json()["skipped"][0]["reason"].startswith("files changed")
    assert forced.json()["updated"] == ["forced"]
    assert board("forced")["visibility"] == "closed"
    missing = update(problem_set="nothing")
    assert missing.status_code == 200
    assert missing.json()["errors"][0]["name"] == "nothing"


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"repository": "somebody/else"}, 403),
        ({"repository": "http://127.0.0.1/x.git"}, 403),
        ({"repository": "file:///etc"}, 403),
        ({"repository": "https://not-allowed.example/problems.git"}, 403),  # its host is not
        ({"repository": "ssh://git@example.org/problems.git"}, 403),  # nor is this scheme
        ({"repository": f"{REPOSITORY}/../../else/x"}, 403),
        ({"branch": "--upload-pack=touch"}, 400),
        ({"branch": "a..b"}, 400),
        ({"branch": "/a"}, 400),
        ({"branch": "a b"}, 400),
        ({"branch": "a\0b"}, 400),
        ({"branch": ""}, 400),
        ({"visibility": "secret"}, 400),
        ({"force": "perhaps"}, 400),
        ({"repository": None}, 400),
    ],
)
def test_what_is_not_allowed_is_not_asked_for(update, archives, changed, status):
    archives.serve(zipped(renamed("never")))

    answer = update(**changed)

    assert answer.status_code == status, answer.text
    assert isinstance(answer.json()["detail"], str)
    assert archives.asked == []


def test_an_address_with_a_user_in_it_is_not_asked_for(update, archives):
    answer = update(repository=f"http://user@{archives.netloc}/problems.git")

    assert answer.status_code == 403
    assert archives.asked == []


# --- Bad days ---


def link(name, to):
    entry = zipfile.ZipInfo(name)
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return {entry: to}


def bomb():
    return {f"zeros-{number}": b"\0" * 2**20 for number in range(300)}


HOSTILE = {
    "climbs out": lambda: {zipfile.ZipInfo("top/../../../climbed"): "x"},
    "is absolute": lambda: {zipfile.ZipInfo("/tmp/climbed"): "x"},
    "has backslashes": lambda: {zipfile.ZipInfo("top\\..\\..\\climbed"): "x"},
    "has two folders": lambda: {zipfile.ZipInfo("other/file"): "x"},
    "is too large unpacked": bomb,
    "has too many files": lambda: dict.fromkeys(map(str, range(20_001)), ""),
    "has a name that is too long": lambda: {"n" * 300: "x"},
    "has a file as a folder": lambda: {"problems/demo.yaml/inner": "x"},
}


@pytest.mark.parametrize("how", HOSTILE)
def test_a_hostile_archive_is_refused_and_nothing_is_changed(update, archives, desk, how):
    archives.serve(zipped(renamed("hostile") | HOSTILE[how]()))

    answer = update()

    assert answer.status_code == 502, answer.text
    assert answer.json()["code"] == "bad_archive"
    assert desk.rows("SELECT 1 FROM leaderboards_leaderboard WHERE name = 'hostile'") == []
    assert "/tmp" not in answer.json()["detail"].replace("/tmp/climbed", "")


def test_an_entry_that_is_there_twice_is_refused(update, archives):
    with pytest.warns(UserWarning, match="Duplicate name"):
        packed = zipped(renamed("twice") | {zipfile.ZipInfo("reference-kernels-main/problems/demo.yaml"): "x"})  # fmt: skip
    archives.serve(packed)

    assert update().json()["code"] == "bad_archive"


@pytest.fixture
def secret(tmp_path):
    """A file outside of every problem, of this test alone: nothing of the machine is linked to."""
    (tmp_path / "secret.py").write_text("MARK-SECRET\n")
    yield tmp_path / "secret.py"
    assert (tmp_path / "secret.py").read_text() == "MARK-SECRET\n"


def test_links_are_left_out_so_that_a_task_cannot_read_this_machine(update, archives, secret):
    top = "reference-kernels-main/problems"
    files = renamed("linked", **{"problems/rowsum_py/eval.py": None})
    files |= link(f"{top}/rowsum_py/eval.py", str(secret))
    files |= link(f"{top}/folder", str(secret.parent))
    archives.serve(zipped(files))

    answer = update()

    assert answer.json()["created"] == ["linked2"]
    ((error),) = answer.json()["errors"]
    assert "there is no such file" in error["error"]
    assert "MARK-SECRET" not in answer.text


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"<html>404</html>", 404, "no_such_branch"),
        (b"<html>404: saved as zip</html>", 200, "bad_archive"),
        (b"", 200, "bad_archive"),
        (zipped(problem_files())[:-100], 200, "bad_archive"),
        (zipped({}), 200, "bad_archive"),
        (b"gateway", 502, "fetch_failed"),
        (b"", 500, "fetch_failed"),
        (b"", 204, "fetch_failed"),
    ],
)
def test_a_download_that_failed_is_an_error_and_no_success(update, archives, body, status, code):
    """The reference tells all of these as 200."""
    archives.serve(body, status=status)

    answer = update()

    assert answer.status_code == (404 if code == "no_such_branch" else 502)
    assert answer.json()["code"] == code
    assert isinstance(answer.json()["detail"], str)


def test_a_redirect_is_not_followed(update, archives):
    archives.answers["/inside"] = (200, {}, zipped(renamed("inside")))
    archives.serve(b"", status=302, Location=f"http://{archives.netloc}/inside")

    answer = update()

    assert (answer.status_code, answer.json()["code"]) == (502, "fetch_failed")
    assert len(archives.asked) == 1


def test_damage_inside_of_a_file_is_found(update, archives):
    packed = bytearray(zipped(renamed("damaged")))
    packed[60:70] = bytes(10)
    archives.serve(bytes(packed))

    assert update().json()["code"] == "bad_archive"


def test_a_host_that_drips_is_given_up_and_keeps_nobody_waiting(update, archives, desk):
    """One sync at a time; all other requests are answered meanwhile."""
    path = archives.serve(b"")
    archives.dripping.add(path)
    with ThreadPoolExecutor(1) as pool, desk.client(cli_id=None, timeout=FETCH_LIMIT_S / 2) as any:
        slow = pool.submit(update)
        wait_for(lambda: archives.asked)
        others = [any.get("/leaderboards").status_code for _ in range(16)]
        second = update()
        strangers = any.post("/admin/update-problems", json={}).status_code
        assert not slow.done()
        answer = slow.result()
    archives.serve(zipped(renamed("after")))
    archives.dripping.clear()

    assert others == [200] * 16
    assert (second.status_code, second.json()["code"]) == (409, "sync_running")
    assert strangers == 401
    assert (answer.status_code, answer.json()["code"]) == (504, "fetch_timed_out")
    assert update().json()["created"] == ["after", "after2"]


# --- Git ---


def test_a_branch_is_cloned_and_its_commit_recorded(update, git_repository, board):
    commit_files(git_repository, renamed("cloned"))
    commit = commit_files(git_repository, renamed("branched"), branch="feature/x")
    address = f"file://{git_repository}"

    answer = update(repository=address, branch="feature/x")

    assert answer.json()["created"] == ["branched", "branched2"], answer.text
    assert board("branched")["commit"] == commit
    assert board("branched")["repository"] == address
    assert board("branched")["directory"] == "problems/rowsum_py"
    missing = update(repository=address, branch="nothing")
    assert (missing.status_code, missing.json()["code"]) == (404, "no_such_branch")
    assert str(git_repository.parent) not in missing.json()["detail"].replace(address, "")


def test_links_and_git_files_of_a_repository_are_not_read(update, git_repository, secret):
    competition = COMPETITION.replace("rowsum_demo", "gitlink").replace("transpose_demo", "gitdir")
    stolen = TASK.replace("source: eval.py", "source: ../../.git/config")
    files = problem_files() | {"problems/demo.yaml": competition}
    commit_files(git_repository, files, branch="links")
    (git_repository / "problems/rowsum_py/eval.py").unlink()
    (git_repository / "problems/rowsum_py/eval.py").symlink_to(secret)
    commit_files(git_repository, {"problems/transpose_py/task.yml": stolen}, branch="links")

    answer = update(repository=f"file://{git_repository}", branch="links")

    assert answer.json()["created"] == []
    told = {each["name"]: each["error"] for each in answer.json()["errors"]}
    assert "leads out of the checkout" in told["gitlink"]
    assert "belongs to git" in told["gitdir"]
    assert "MARK-SECRET" not in answer.text
    git(git_repository, "rm", "-q", "-f", "problems/rowsum_py/eval.py")
    git(git_repository, "commit", "-q", "-m", "no link is left for others")


def test_a_repository_that_is_too_large_is_refused_before_it_is_written(
    update, git_repository, tmp_path
):
    """One blob of zeros under five names: small on the wire, 300 MB on the disk."""
    commit_files(git_repository, renamed("bomb"), branch="bomb")
    (tmp_path / "zeros").write_bytes(bytes(60 * 2**20))
    blob = git(git_repository, "hash-object", "-w", str(tmp_path / "zeros"))
    for number in range(5):
        entry = f"100644,{blob},zeros-{number}"
        git(git_repository, "update-index", "--add", "--cacheinfo", entry)
    git(git_repository, "commit", "-q", "-m", "bomb")
    git(git_repository, "reset", "-q", "--hard", "HEAD~1")
    git(git_repository, "branch", "-f", "bombed", "HEAD@{1}")

    answer = update(repository=f"file://{git_repository}", branch="bombed")

    assert (answer.status_code, answer.json()["code"]) == (502, "bad_archive"), answer.text
    assert "too much" in answer.json()["detail"]


def test_a_repository_that_is_not_there_is_an_error(update, archives):
    answer = update(repository=f"http://{archives.netloc}/gone.git")

    assert (answer.status_code, answer.json()["code"]) == (502, "fetch_failed")
    assert archives.asked[0][0].startswith("/gone.git")
