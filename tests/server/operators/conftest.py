"""One web server with an admin token, problems on its disk, and a host of archives."""

from __future__ import annotations

import pytest

from tests.server.operators.archive_host import ArchiveHost
from tests.server.operators.problems import problem_files, write_files
from tests.server.service import Service

ADMIN_TOKEN = "MARK-SECRET-admin-token"
ADMIN = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
FETCH_LIMIT_S = 4


@pytest.fixture(scope="session")
def shared_archives():
    made = ArchiveHost()
    yield made
    made.close()


@pytest.fixture
def archives(shared_archives):
    shared_archives.answers.clear()
    shared_archives.dripping.clear()
    shared_archives.asked.clear()
    return shared_archives


@pytest.fixture(scope="session")
def git_repository(tmp_path_factory):
    """Where a repository that may be synced is to be put."""
    return tmp_path_factory.mktemp("git") / "problems.git"


@pytest.fixture(scope="session")
def problems_dir(tmp_path_factory):
    """Problems on the server's disk, and a file beside them that is none of them."""
    root = tmp_path_factory.mktemp("disk")
    write_files(root, problem_files())
    (root / "outside").mkdir()
    write_files(root / "outside", {"task.yml": "gpus: [B200]\n"})
    return root / "problems"


@pytest.fixture(scope="session")
def shared_desk(tmp_path_factory, template, shared_archives, git_repository, problems_dir):
    repositories = [
        "gpu-mode/reference-kernels",
        f"file://{git_repository}",
        f"http://{shared_archives.netloc}/gone.git",
        "https://not-allowed.example/problems.git",
        f"http://user@{shared_archives.netloc}/problems.git",
        "ssh://git@example.org/problems.git",
    ]
    made = Service(
        tmp_path_factory.mktemp("desk"),
        ADMIN_TOKEN=ADMIN_TOKEN,
        GITHUB_ARCHIVES_URL=f"http://{shared_archives.netloc}",
        PROBLEM_HOSTS=shared_archives.netloc,
        PROBLEM_SCHEMES="https,http,file",
        PROBLEM_REPOSITORIES=",".join(repositories),
        PROBLEM_FETCH_LIMIT_S=FETCH_LIMIT_S,
        ACTIVATION_RATE="1000/m",  # one person tries many codes
        PROBLEMS_DIR=problems_dir,
    ).prepare(template)
    try:
        made.start_web()
        yield made
    finally:
        made.stop_all()


@pytest.fixture
def desk(shared_desk):
    """The web server; every operator test makes leaderboards of its own names."""
    return shared_desk


@pytest.fixture
def admin(desk):
    """An HTTP client that holds the admin token."""
    with desk.client(cli_id=None, headers=ADMIN) as client:
        yield client


@pytest.fixture
def audited(desk):
    """The audit rows of a verb, newest first."""

    def read(verb):
        return desk.rows(
            "SELECT * FROM leaderboards_auditevent WHERE verb = ? ORDER BY id DESC", verb
        )

    return read


@pytest.fixture
def make_board(admin, problems_dir):
    """A leaderboard by the admin API: `<name>-dev`, public or closed."""

    def make(name, visibility="public"):
        prefix = "problems/rowsum_py/"
        own = {k.removeprefix(prefix): v for k, v in problem_files().items() if prefix in k}
        write_files(problems_dir / name, own)
        answer = admin.post(
            "/admin/leaderboards", json={"directory": name, "visibility": visibility}
        )
        assert answer.status_code == 200, answer.text
        return answer.json()["leaderboard"]

    return make
