"""Fills the database of a service under test; run as a program with that service's environment."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import django

django.setup()

from django.utils import timezone  # noqa: E402

from leaderboards.models import ClientId, Leaderboard, TaskRevision, digest_client_id  # noqa: E402
from tests.conftest import make_definition, make_person  # noqa: E402


def make_board(name: str, **fields: Any) -> None:
    defaults: dict[str, Any] = {
        "gpu_types": ["B200", "H100", "L4x4", "MI300"],
        "deadline": timezone.now() + timedelta(days=30),
    }
    board = Leaderboard.objects.create(name=name, **defaults | fields)
    task = make_definition()
    board.current_revision = TaskRevision.objects.create(
        leaderboard=board, definition_json=task.to_json(), sha256=task.sha256
    )
    board.save()


def seed():
    make_person("alice")
    make_person("bob")
    make_person("mallory", banned_at=timezone.now(), ban_reason="forged results")
    olga = make_person("olga", is_staff=True, is_superuser=True)
    olga.set_password("olga-password")
    olga.save()
    ClientId.objects.create(
        kind="cli",
        digest=digest_client_id("revoked-cli-id"),
        user=olga,
        activated_at=timezone.now(),
        revoked_at=timezone.now(),
    )
    ClientId.objects.create(kind="cli", digest=digest_client_id("issued-cli-id"))
    make_board("rowsum")
    make_board("other", gpu_types=["H100"])
    make_board("over", deadline=timezone.now() - timedelta(days=1))


if __name__ == "__main__":
    seed()
