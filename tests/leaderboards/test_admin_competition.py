"""What an operator of a competition does in the admin site: invites, limits, the switch, runs."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from leaderboards.actions import add_revision
from leaderboards.models import (
    AcceptanceSwitch,
    AuditEvent,
    Invite,
    Leaderboard,
    RateLimit,
    Run,
    Submission,
    TaskRevision,
)
from leaderboards.task_definition import SUBMISSION_MARK
from runners.gpu.contract import Mode
from tests.conftest import make_definition, make_person
from tests.leaderboards.conftest import a_stage, good_stages
from tests.profiling.pages import page_of, text_of


@pytest.fixture
def site(client, olga):
    """A client that olga is signed in with."""
    client.force_login(olga)
    return client


def add_page(model):
    return reverse(f"admin:leaderboards_{model._meta.model_name}_add")


def act(site, model, action, *rows):
    form = {"action": action, "_selected_action": [row.pk for row in rows]}
    return site.post(page_of(model), form, follow=True).content.decode()


@pytest.fixture
def closed(make_leaderboard):
    return make_leaderboard("cup", visibility="closed")


def test_invites_are_made_shown_and_revoked(site, olga, alice, closed):
    answer = site.post(add_page(Invite), {"leaderboards": [closed.pk], "count": 3})

    assert answer.status_code == 302
    first, second, _ = Invite.objects.order_by("pk")
    assert list(first.leaderboards.all()) == [closed]
    assert first.code in text_of(site, page_of(Invite))
    assert "cup" in text_of(site, page_of(Invite, of=first.pk))

    act(site, Invite, "revoke", first)
    said = act(site, Invite, "revoke", first, second)

    assert "revoked before" in said
    assert Invite.objects.standing().count() == 1
    made, *revoked = AuditEvent.objects.order_by("pk")
    assert {made.actor, *(event.actor for event in revoked)} == {olga}
    assert [event.verb for event in revoked] == ["invite.revoked"] * 2


@pytest.mark.parametrize("form", [{"count": 0}, {"count": 10_001}, {"leaderboards": [99]}])
def test_a_bad_order_of_invites_makes_none(site, closed, form):
    answer = site.post(add_page(Invite), {"leaderboards": [closed.pk], "count": 1} | form)

    assert answer.status_code == 200
    assert not Invite.objects.exists()


def test_an_invite_is_found_by_its_code_and_by_who_claimed_it(site, alice, closed):
    site.post(add_page(Invite), {"leaderboards": [closed.pk], "count": 2})
    first, second = Invite.objects.order_by("pk")
    Invite.objects.filter(pk=first.pk).update(claimed_by=alice, claimed_at=first.created_at)

    for term in (first.code, "alice", "id-alice"):
        page = text_of(site, f"{page_of(Invite)}?q={term}")
        assert f"/{first.pk}/change/" in page
        assert f"/{second.pk}/change/" not in page


def test_limits_are_set_changed_and_removed(site, rowsum):
    form = {"leaderboard": rowsum.pk, "mode_category": "test", "max_submissions_per_hour": 5}
    assert site.post(add_page(RateLimit), form).status_code == 302
    limit = RateLimit.objects.get()
    changed = site.post(page_of(RateLimit, of=limit.pk), {"max_submissions_per_hour": 0})

    assert changed.status_code == 302
    assert RateLimit.objects.get().max_submissions_per_hour == 0

    act(site, RateLimit, "remove", limit)

    assert not RateLimit.objects.exists()
    verbs = AuditEvent.objects.order_by("pk").values_list("verb", flat=True)
    assert list(verbs) == ["leaderboard.rate_limit_set"] * 2 + ["leaderboard.rate_limit_removed"]


def test_submissions_are_stopped_and_started_by_a_new_row(site, olga):
    site.post(add_page(AcceptanceSwitch), {})
    stopped = AcceptanceSwitch.objects.first()
    site.post(add_page(AcceptanceSwitch), {"accepts": "on"})

    assert (stopped.accepts, stopped.changed_by) == (False, olga.actor_label)
    assert AcceptanceSwitch.objects.count() == 2
    assert AcceptanceSwitch.objects.first().accepts
    assert AuditEvent.objects.filter(verb="service.acceptance_switched", actor=olga).count() == 2


def test_runs_are_listed_without_what_they_printed_and_shown_with_it(
    site, run, django_assert_max_num_queries
):
    """FR-36."""
    submission = run({"test": a_stage(result={"test-count": "MARK"})}, mode=Mode.TEST)
    (stage,) = Run.objects.all()

    with django_assert_max_num_queries(8) as asked:
        page = text_of(site, f"{page_of(Run)}?q={submission.pk}")

    assert f"/{stage.pk}/change/" in page
    assert not any('"compilation"' in query["sql"] for query in asked.captured_queries)
    assert "MARK" in text_of(site, page_of(Run, of=stage.pk))


@pytest.fixture
def revised(rowsum):
    """rowsum with a second revision: another evaluator and another benchmark."""
    definition = make_definition(
        files={"submission.py": SUBMISSION_MARK, "eval.py": "print('<b>better</b>')\n"},
        benchmarks=({"size": 256, "seed": 2}, {"size": 999, "seed": 3}),
    )
    add_revision(rowsum, definition, repository="", commit="", directory="", actor=None)
    return rowsum


def test_two_revisions_are_compared_line_by_line(site, revised):
    old, new = revised.revisions.order_by("pk")
    wanted = [
        "-print(&#x27;evaluator&#x27;)",
        "+print(&#x27;&lt;b&gt;better&lt;/b&gt;&#x27;)",
        "-benchmarks[2]: {&quot;size&quot;: 1024, &quot;seed&quot;: 4}",
        "+benchmarks[1]: {&quot;size&quot;: 999, &quot;seed&quot;: 3}",
    ]

    compared = act(site, TaskRevision, "compare", new, old)
    own_page = text_of(site, page_of(TaskRevision, of=new.pk))

    for page in (compared, own_page):
        assert [line for line in wanted if line not in page] == []
    assert "the first" in text_of(site, page_of(TaskRevision, of=old.pk))
    assert "Select two revisions" in act(site, TaskRevision, "compare", old)


def test_leaderboards_are_deleted_after_a_question(site, send, olga, rowsum, closed):
    queued = send(Mode.TEST)

    asked = act(site, Leaderboard, "delete_boards", rowsum, closed)
    assert "1 submission" in asked
    assert Leaderboard.objects.existing().count() == 2

    form = {
        "action": "delete_boards",
        "_selected_action": [rowsum.pk, closed.pk],
        "confirmed": "yes",
    }
    site.post(page_of(Leaderboard), form)

    assert not Leaderboard.objects.existing().exists()
    queued.job.refresh_from_db()
    assert queued.job.status == "cancelled"
    assert AuditEvent.objects.filter(verb="leaderboard.deleted", actor=olga).count() == 2


def test_a_cheat_is_taken_out_of_the_ranking_and_put_back(site, run, olga):
    submission = run(good_stages(), good_stages())

    def ranked():
        return len(site.get("/submissions/rowsum/B200").json())

    act(site, Submission, "disqualify", submission)
    assert ranked() == 0
    assert f"/{submission.pk}/change/" in text_of(site, f"{page_of(Submission)}?verdict=hacked")
    act(site, Submission, "disqualify", submission)
    act(site, Submission, "reinstate", submission)
    assert ranked() == 1
    said = AuditEvent.objects.filter(actor=olga, subject_id=str(submission.pk)).order_by("pk")
    assert [event.verb for event in said] == ["submission.disqualified", "submission.reinstated"]


def test_submissions_are_deleted_after_a_question(site, run, send, olga):
    ranked, queued = run(good_stages(), good_stages()), send()

    asked = act(site, Submission, "delete_submissions", ranked, queued.submission)
    assert "This cannot be taken back" in asked
    assert not Submission.objects.exclude(deleted_at=None).exists()

    form = {
        "action": "delete_submissions",
        "_selected_action": [ranked.pk, queued.submission_id],
        "confirmed": "yes",
    }
    site.post(page_of(Submission), form)

    assert not Submission.objects.filter(deleted_at=None).exists()
    assert site.get("/submissions/rowsum/B200").json() == []
    queued.job.refresh_from_db()
    assert queued.job.status == "cancelled"
    assert "deleted before" in act(site, Submission, "delete_submissions", ranked)


def test_an_operator_without_permission_changes_nothing(client, closed, rowsum):
    clerk = make_person("clerk", is_staff=True)
    client.force_login(clerk)

    for model in (Invite, RateLimit, AcceptanceSwitch):
        assert client.post(add_page(model), {}).status_code == 403


def test_who_may_only_look_at_submissions_judges_and_deletes_none(client, run):
    clerk = make_person("clerk", is_staff=True)
    clerk.user_permissions.add(Permission.objects.get(codename="view_submission"))
    client.force_login(clerk)
    submission = run(good_stages(), good_stages())

    for action in ("disqualify", "delete_submissions"):
        act(client, Submission, action, submission)

    submission.refresh_from_db()
    assert (submission.verdict, submission.deleted_at) == ("", None)
