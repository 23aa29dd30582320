"""docs/operations.md, Backup: what it says to run brings everything back, and says when it did not."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.modal.postgres import find_programs
from tests.server.popcorn import PATH, Stream, archives, form
from tests.server.service import ROOT

pytestmark = [pytest.mark.services, pytest.mark.xdist_group("services")]


def run(argv, **options):
    return subprocess.run(argv, capture_output=True, text=True, check=False, **options)


def verify(env):
    return run([sys.executable, "manage.py", "verify_reports"], cwd=ROOT, env=env)


def test_a_dump_and_the_reports_bring_everything_back(tmp_path, whole):
    service, nginx = whole
    service.start_dispatcher()
    try:
        with nginx.client() as client, client.stream("POST", PATH, **form()) as response:
            stored = archives(Stream(response).last()[1])
            request_id = response.headers["X-Profile-Request"]
    finally:
        service.stop("dispatcher")
    programs, url = find_programs(), service.postgres.url
    restored = url.removesuffix("/postgres") + "/restored"

    dump = run([f"{programs}/pg_dump", "-Fc", "-f", tmp_path / "db.dump", url])
    shutil.copytree(service.folder / "reports", tmp_path / "reports")
    service.postgres.run_outside("CREATE DATABASE restored")
    back = run([f"{programs}/pg_restore", "--no-owner", "-d", restored, tmp_path / "db.dump"])
    env = service.env | {"DATABASE_URL": restored, "DATA_DIR": str(tmp_path)}
    good = verify(env)
    found = run(
        [sys.executable, "manage.py", "shell", "-v0", "-c",
         "from profiling.models import ProfileRequest as R; "
         f"print(R.objects.get(pk='{request_id}').verdict)"],
        cwd=ROOT, env=env,
    )  # fmt: skip
    first, *_ = (path for path in (tmp_path / "reports").rglob("*") if path.is_file())
    first.write_bytes(b"other")
    bad = verify(env)
    first.unlink()
    missing = verify(env)
    service.postgres.run_outside("DROP DATABASE restored")

    assert (dump.returncode, back.returncode) == (0, 0), dump.stderr + back.stderr
    assert len(stored) == 3
    assert good.returncode == 0, good.stdout + good.stderr
    assert "files are what was stored" in good.stdout
    assert found.stdout.strip() == "complete"
    assert bad.returncode == missing.returncode == 1
    assert "bytes in place of" in bad.stdout
    assert "is missing" in missing.stdout
