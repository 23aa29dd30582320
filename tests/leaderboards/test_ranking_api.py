"""Rankings and their counts: wire-contract.md, 12 and 14."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from leaderboards.deletion import delete_submission
from leaderboards.judging import disqualify, reinstate
from leaderboards.models import Standing
from tests.leaderboards.conftest import a_stage, client_of, good_stages
from tests.wire import assert_shape, example


def ranking(query="", path="/submissions/rowsum/B200"):
    answer = Client().get(f"{path}?{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def timed(nanoseconds):
    said = {"benchmark-count": "1", "benchmark.0.mean": str(nanoseconds)}
    return good_stages(leaderboard=a_stage(result=said))


def test_everybody_is_ranked_by_their_best_and_equal_scores_share_a_rank(
    run, alice, bob, make_person_named
):
    carol, dave = make_person_named("carol"), make_person_named("dave")
    for person, time in [(alice, 3000), (alice, 2000), (bob, 1000), (carol, 2000), (dave, 5000)]:
        run(timed(time), timed(time), actor=person)

    rows = ranking()

    assert_shape(rows, [example("ranking.json")[0] | {"user_id": "text"}])
    assert [(row["rank"], row["user_name"], row["submission_score"]) for row in rows] == [
        (1, "bob", pytest.approx(1e-6)),
        (2, "alice", pytest.approx(2e-6)),
        (2, "carol", pytest.approx(2e-6)),
        (4, "dave", pytest.approx(5e-6)),
    ]
    assert [row["rank"] for row in ranking("limit=2&offset=1")] == [2, 2]
    assert ranking(path="/submission_count/rowsum/B200") == {"count": 4}
    assert ranking("user_id=a%00b", path="/submission_count/rowsum/B200") == {"count": 0}
    assert ranking("user_id=id-alice", path="/submission_count/RowSum/b200") == {"count": 2}


def test_a_ranking_is_one_query_after_the_leaderboard_is_found(run, django_assert_num_queries):
    run(good_stages(), good_stages())

    with django_assert_num_queries(2):
        assert len(ranking()) == 1


@pytest.mark.parametrize(
    ("public", "secret"),
    [
        (good_stages(), {"test": a_stage(passed=False)}),
        (good_stages(), good_stages(leaderboard=a_stage(passed=False))),
        (good_stages(), good_stages(leaderboard=None)),
        (good_stages(), {}),
        (good_stages(), None),
        ({"test": a_stage(passed=False)}, None),
    ],
)
def test_only_what_passed_in_secret_as_well_is_ranked(run, public, secret):
    run(public, secret)

    assert ranking() == []


def test_a_hacked_submission_is_not_ranked_and_the_next_best_is(run, olga):
    best, second = run(timed(1000), timed(1000)), run(timed(2000), timed(2000))

    disqualify(best, actor=olga)
    assert [row["submission_id"] for row in ranking()] == [second.pk]
    disqualify(second, actor=olga)
    assert ranking() == []
    assert ranking(path="/submission_count/rowsum/B200") == {"count": 0}

    reinstate(best, actor=olga)
    assert [row["submission_id"] for row in ranking()] == [best.pk]


def test_a_deleted_submission_is_not_ranked_and_the_next_best_is(run, alice):
    best, second = run(timed(1000), timed(1000)), run(timed(2000), timed(2000))

    delete_submission(best, actor=alice)

    assert [row["submission_id"] for row in ranking()] == [second.pk]


def test_standings_can_be_worked_out_anew(run, alice, bob, capsys):
    best = run(timed(1000), timed(1000))
    run(timed(2000), timed(2000), actor=bob)
    ranked = ranking()
    # What a process of the last release, which knows no standings, left behind.
    Standing.objects.filter(user=alice).delete()
    Standing.objects.filter(user=bob).update(run=best.runs.filter(mode="test").first(), score=9)

    call_command("settle_standings")
    assert capsys.readouterr().out == "standings: 2, of which 2 were not up to date\n"
    assert ranking() == ranked
    call_command("settle_standings")
    assert "0 were not" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("user_id", "shown"),
    [
        ("4242", 4242),
        (str(2**53 - 1), 2**53 - 1),
        (str(2**53 + 1), str(2**53 + 1)),
        ("1122334455667788990", "1122334455667788990"),
        ("id-alice", "id-alice"),
        ("007", "007"),
        ("²", "²"),
    ],
)
def test_user_ids_are_numbers_only_where_a_number_arrives_unharmed(run, alice, user_id, shown):
    run(good_stages(), good_stages())
    type(alice).objects.filter(pk=alice.pk).update(user_id=user_id)

    assert ranking()[0]["user_id"] == shown


@pytest.mark.parametrize("path", ["submissions", "submission_count"])
@pytest.mark.parametrize("place", ["nothing/B200", "rowsum/H200", "rowsum/nothing"])
def test_what_is_not_there_is_a_404(rowsum, path, place):
    answer = Client().get(f"/{path}/{place}")

    assert answer.status_code == 404
    assert isinstance(answer.json()["detail"], str)


def test_a_closed_ranking_is_for_members(rowsum, bob, olga):
    rowsum.visibility = "closed"
    rowsum.save()

    def status(client):
        return client.get("/submissions/rowsum/B200").status_code

    assert status(Client()) == 401
    assert status(client_of("bob")) == 403
    assert status(client_of("olga")) == 200
    assert status(Client(headers={"X-Popcorn-Cli-Id": "unknown"})) == 401
    bob.invites.create(code="x", claimed_at=timezone.now() - timedelta(days=1)).leaderboards.add(
        rowsum
    )
    assert status(client_of("bob")) == 200
