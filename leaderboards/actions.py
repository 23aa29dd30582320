"""What can be done to people and leaderboards; each deed and its audit row in one transaction."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Any, Unpack

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from leaderboards import audit
from leaderboards.audit import By
from leaderboards.exceptions import BadLeaderboard, BadUserName
from leaderboards.models import (
    ClientId,
    Leaderboard,
    PopcornUser,
    TaskRevision,
    digest_client_id,
)
from leaderboards.task_definition import TaskDefinition
from leaderboards.verbs import Verb

# What `change_leaderboard` may write.
CHANGEABLE = frozenset(["deadline", "description", "gpu_types", "visibility"])


@transaction.atomic
def create_leaderboard(
    name: str,
    *,
    deadline: datetime,
    gpu_types: tuple[str, ...],
    description: str = "",
    visibility: Leaderboard.Visibility = Leaderboard.Visibility.PUBLIC,
    **by: Unpack[By],
) -> Leaderboard:
    """A leaderboard without a task: `add_revision` gives it one. Raises BadLeaderboard."""
    board = Leaderboard(
        name=name,
        description=description,
        deadline=deadline,
        gpu_types=list(gpu_types),
        visibility=visibility,
        creator=by["actor"],
    )
    try:
        board.full_clean()
    except ValidationError as error:
        raise BadLeaderboard(f"leaderboard {name[:80]!r}: {' '.join(error.messages)}") from error
    board.save()
    audit.record(
        Verb.LEADERBOARD_CREATED,
        board,
        **by,
        name=name,
        deadline=deadline.isoformat(),
        gpu_types=list(gpu_types),
        visibility=str(visibility),
    )
    return board


@transaction.atomic
def change_leaderboard(
    leaderboard: Leaderboard, *, changes: dict[str, Any], **by: Unpack[By]
) -> None:
    """Set fields of CHANGEABLE; the audit row has old and new."""
    if unknown := changes.keys() - CHANGEABLE:
        raise ValueError(f"not changed here: {sorted(unknown)}")
    before = {name: getattr(leaderboard, name) for name in changes}
    for name, value in changes.items():
        setattr(leaderboard, name, value)
    leaderboard.save(update_fields=list(changes))
    audit.record(
        Verb.LEADERBOARD_CHANGED,
        leaderboard,
        **by,
        name=leaderboard.name,
        before=_jsonable(before),
        after=_jsonable(changes),
    )


def _jsonable(values: dict[str, Any]) -> dict[str, Any]:
    return {k: v.isoformat() if isinstance(v, datetime) else v for k, v in values.items()}


@transaction.atomic
def add_revision(
    leaderboard: Leaderboard,
    definition: TaskDefinition,
    *,
    repository: str,
    commit: str,
    directory: str,
    **by: Unpack[By],
) -> TaskRevision:
    """Make `definition` the current task. An equal one that was there before is taken again."""
    revision, _ = TaskRevision.objects.get_or_create(
        leaderboard=leaderboard,
        sha256=definition.sha256,
        defaults={
            "definition_json": definition.to_json(),
            "repository": repository,
            "commit": commit,
            "directory": directory,
        },
    )
    leaderboard.current_revision = revision
    leaderboard.save(update_fields=["current_revision"])
    audit.record(
        Verb.TASK_REVISED,
        leaderboard,
        **by,
        name=leaderboard.name,
        sha256=revision.sha256,
        repository=repository,
        commit=commit,
        directory=directory,
    )
    return revision


@transaction.atomic
def register_submitter(name: str, *, actor: PopcornUser | None = None) -> tuple[PopcornUser, str]:
    """A person without a password, and their CLI id. Raises BadUserName."""
    user = register_person(name, actor=actor)
    return user, create_cli_id(user, actor=actor)


@transaction.atomic
def register_operator(name: str, *, actor: PopcornUser | None = None) -> tuple[PopcornUser, str]:
    """A person who may do everything in the admin, and their password. Raises BadUserName."""
    password = secrets.token_urlsafe(12)
    user = register_person(name, actor=actor, password=password, is_staff=True, is_superuser=True)
    return user, password


@transaction.atomic
def register_person(
    name: str, *, actor: PopcornUser | None, password: str | None = None, **fields: Any
) -> PopcornUser:
    """A person who has no id yet. Raises BadUserName."""
    user = PopcornUser(username=name, **fields)
    user.set_password(password)
    try:
        user.full_clean()
    except ValidationError as error:
        raise BadUserName(f"user name {name[:80]!r}: {' '.join(error.messages)}") from error
    user.save()
    audit.record(Verb.USER_REGISTERED, user, actor=actor, name=name, operator=user.is_staff)
    return user


def create_cli_id(user: PopcornUser, *, actor: PopcornUser | None = None) -> str:
    """A further CLI id, valid at once. Told this one time: only its digest is kept."""
    return _create_client_id(user, ClientId.Kind.CLI, actor=actor)


def create_web_id(user: PopcornUser, *, actor: PopcornUser | None = None) -> str:
    """An id that a web front end sends for this person; like a CLI id otherwise."""
    return _create_client_id(user, ClientId.Kind.WEB, actor=actor)


@transaction.atomic
def _create_client_id(user: PopcornUser, kind: ClientId.Kind, *, actor: PopcornUser | None) -> str:
    # The prefix keeps a hand-written `cli_id: …` in YAML from being read as a number.
    made = f"kb_{secrets.token_urlsafe(32)}"
    issued = ClientId.objects.create(
        kind=kind, digest=digest_client_id(made), user=user, activated_at=timezone.now()
    )
    audit.record(Verb.CLIENT_ID_ISSUED, user, actor=actor, client_id=issued.pk, kind=str(kind))
    return made
