from __future__ import annotations

import pytest
import yaml
from django.core.management import CommandError, call_command
from django.utils import timezone

from leaderboards import actions
from leaderboards.exceptions import BadLeaderboard, BadUserName
from leaderboards.models import AuditEvent, ClientId, PopcornUser, digest_client_id

pytestmark = pytest.mark.django_db


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())


def test_a_submitter_gets_an_id_of_which_only_the_digest_is_kept():
    user, cli_id = actions.register_submitter("carol")

    kept = ClientId.objects.valid().get(user=user)
    assert kept.digest == digest_client_id(cli_id)
    assert not user.has_usable_password()
    assert not user.is_staff
    assert cli_id not in str([list(AuditEvent.objects.values()), vars(kept)])
    assert [row.verb for row in AuditEvent.objects.order_by("pk")] == [
        "user.registered",
        "user.client_id_issued",
    ]


def test_an_id_written_into_yaml_by_hand_stays_text(alice):
    for _ in range(20):
        cli_id = actions.create_cli_id(alice)

        assert yaml.safe_load(f"cli_id: {cli_id}") == {"cli_id": cli_id}
        assert cli_id.isascii()


@pytest.mark.parametrize("name", ["alice", "", "two words", "x" * 151, "a\nb"])
def test_a_name_that_cannot_be_used_is_refused(alice, name):
    with pytest.raises(BadUserName):
        actions.register_submitter(name)
    assert PopcornUser.objects.count() == 1


@pytest.mark.parametrize("name", ["admin", "Rowsum", "row sum", "", "rowsum"])
def test_a_leaderboard_name_that_cannot_be_used_is_refused(rowsum, name):
    with pytest.raises(BadLeaderboard):
        actions.create_leaderboard(name, actor=None, deadline=timezone.now(), gpu_types=("CPU",))


def test_only_listed_fields_of_a_leaderboard_are_changed(rowsum):
    with pytest.raises(ValueError, match="secret_seed"):
        actions.change_leaderboard(rowsum, actor=None, changes={"secret_seed": 1})


def test_the_command_registers_a_submitter_and_prints_the_id(capsys):
    call_command("create_user", "carol")

    said = printed(capsys)
    user = PopcornUser.objects.get(user_id=said["user_id"])
    assert ClientId.objects.valid().get(digest=digest_client_id(said["cli_id"])).user == user


def test_the_command_registers_an_operator_with_a_password(capsys):
    call_command("create_user", "oscar", "--operator")

    said = printed(capsys)
    user = PopcornUser.objects.get(username="oscar")
    assert user.check_password(said["password"])
    assert (user.is_staff, user.is_superuser) == (True, True)
    assert ClientId.objects.valid().filter(user=user).count() == 1


def test_a_further_id_is_made_by_command(alice, capsys):
    call_command("create_cli_id", "alice")

    digest = digest_client_id(printed(capsys)["cli_id"])
    assert ClientId.objects.valid().get(digest=digest).user == alice
    assert alice.client_ids.count() == 2


def test_commands_say_what_is_wrong(alice):
    with pytest.raises(CommandError, match="there is no user 'nobody'"):
        call_command("create_cli_id", "nobody")
    with pytest.raises(CommandError, match="already exists"):
        call_command("create_user", "alice")
