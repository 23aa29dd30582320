from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from leaderboards.invites import claim_invite, create_invites
from leaderboards.limits import set_rate_limit, switch_acceptance
from leaderboards.models import FloodRefusal, ModeCategory, PopcornUser
from runners.gpu.contract import FailureKind, Note, NoteKind
from runners.pauses import pause_gpu
from tests.profiling.envelopes import (
    a_failure,
    a_launch,
    a_record,
    collect,
    make_archive,
    write_envelope,
)
from tests.profiling.orders import refuse, submit
from tests.profiling.pages import HOSTILE


@pytest.fixture
def site(client, olga):
    """A client that olga is signed in with."""
    client.force_login(olga)
    return client


@pytest.fixture
def captured(alice, rowsum, tmp_path):
    """A finished request of alice: benchmark 0 captured, 1 and 2 failed, told in hostile words."""
    request = submit(alice, ncu_kernel_name=HOSTILE)
    archive = make_archive(tmp_path / "a.zip", [a_launch(f"{HOSTILE}{n}") for n in range(30)])
    note = Note(kind=NoteKind.LAUNCH_LIMIT_REACHED, message=f"Limit reached {HOSTILE}")
    runs = {
        "profile.0": a_record("profile.0.zip", notes=(note,)),
        "profile.1": a_failure(FailureKind.COMPILE_FAILED, f"error: {HOSTILE}"),
    }
    envelope = write_envelope(
        tmp_path / "envelope", request.job, runs, {"profile.0.zip": archive}, origin="synthetic"
    )
    collect(request.job, envelope)
    request.refresh_from_db()
    return request


@pytest.fixture
def one_of_each(captured, alice):
    """At least one row in every table that the pages show."""
    refuse(alice)
    pause_gpu("H100", kind="counters_not_permitted", reason=HOSTILE, actor_label=HOSTILE)
    FloodRefusal.count_one("user:id-alice", "profile", timezone.now())
    PopcornUser.objects.filter(pk=alice.pk).update(display_name=HOSTILE)
    board = captured.leaderboard
    (invite,) = create_invites([board], 1, actor=None)
    claim_invite(invite.code, user=alice, actor=alice)
    set_rate_limit(board, ModeCategory.TEST, 1000, actor=None)
    switch_acceptance(True, actor=None, actor_label=HOSTILE)


@pytest.fixture
def operator(olga):
    client = Client()
    client.force_login(olga)
    return client


@pytest.fixture
def measure(rowsum, tmp_path):
    """A finished request for one benchmark, whose archive holds these launches."""

    def make(owner, launches=None, *, index=0, record=None, files=None, order=None, **report):
        request = submit(owner, benchmark_index=index, **(order or {}))
        archive = make_archive(tmp_path / "a.zip", launches, files=files, **report)
        name = f"profile.{index}.zip"
        runs = {f"profile.{index}": record or a_record(name)}
        collect(request.job, write_envelope(tmp_path / "e", request.job, runs, {name: archive}))
        request.refresh_from_db()
        return request

    return make
