"""What an operator does about ids at a terminal, and what the start refuses to begin with."""

from __future__ import annotations

import io

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command

from leaderboards.api.client_address import TrustedProxies
from leaderboards.identity.client_ids import issue_cli_id, revoke_client_id
from leaderboards.models import AuditEvent, ClientId, PopcornUser, digest_client_id

pytestmark = pytest.mark.django_db


def holder(client_id):
    """Whose valid id it is; None when it is nobody's."""
    found = ClientId.objects.valid().filter(digest=digest_client_id(client_id)).first()
    return found.user if found else None


def test_an_operator_activates_an_id_by_command(alice, capsys):
    cli_id = issue_cli_id("203.0.113.7")

    call_command("activate_cli_id", cli_id, "--user", "id-alice")

    assert holder(cli_id) == alice
    assert cli_id not in capsys.readouterr().out
    event = AuditEvent.objects.get(verb="user.client_id_activated")
    assert (event.actor_label, event.subject_id) == ("system", str(alice.pk))
    assert event.data["issued_to_address"] == "203.0.113.7"


def test_the_id_can_come_from_standard_input_and_the_person_be_new(monkeypatch):
    cli_id = issue_cli_id(None)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"cli_id: {cli_id}\n"))

    call_command("activate_cli_id", "-", "--new-user", "carol")

    assert holder(cli_id) == PopcornUser.objects.get(username="carol")


def test_the_command_says_what_is_wrong_and_changes_nothing(alice):
    cli_id = issue_cli_id(None)

    with pytest.raises(CommandError, match="there is no user"):
        call_command("activate_cli_id", cli_id, "--user", "nobody")
    with pytest.raises(CommandError, match="already exists"):
        call_command("activate_cli_id", cli_id, "--new-user", "alice")
    with pytest.raises(CommandError, match="no such id waits"):
        call_command("activate_cli_id", "nonsense", "--new-user", "carol")
    with pytest.raises(CommandError, match="required"):
        call_command("activate_cli_id", cli_id)

    assert holder(cli_id) is None
    assert not PopcornUser.objects.filter(username="carol").exists()


def test_a_person_s_id_cannot_be_given_to_another(alice, bob):
    cli_id = issue_cli_id(None)
    call_command("activate_cli_id", cli_id, "--user", "id-alice")

    with pytest.raises(CommandError, match="no such id waits"):
        call_command("activate_cli_id", cli_id, "--user", "id-bob")

    assert holder(cli_id) == alice


def test_a_revoked_id_stays_revoked_and_is_told_once(alice):
    client_id = alice.client_ids.get()

    revoke_client_id(client_id, actor=None)
    revoke_client_id(client_id, actor=None)

    assert holder("alice-cli-id") is None
    assert AuditEvent.objects.filter(verb="user.client_id_revoked").count() == 1


def ids_of_errors():
    """Of this app: what else is wrong with the machine is not asked here."""
    found = [str(message.id) for message in run_checks() if message.is_serious()]
    return [each for each in found if each.startswith("leaderboards.")]


@pytest.mark.parametrize("half", ["DISCORD_CLIENT_ID", "GITHUB_CLIENT_SECRET"])
def test_half_a_provider_is_an_error_at_the_start(settings, half):
    setattr(settings, half, "MARK-SECRET")

    assert ids_of_errors() == ["leaderboards.E001"]
    assert "MARK-SECRET" not in str(run_checks())


@pytest.mark.parametrize(
    "token", ["MARK-SECRET", "MARK-SECRET with a space", "MARK-SECRET-tökén-x"]
)
def test_fr_37_a_weak_admin_token_is_an_error_at_the_start_that_does_not_show_it(settings, token):
    settings.ADMIN_TOKEN = token

    assert ids_of_errors() == ["leaderboards.E002"]
    assert "MARK-SECRET" not in str(run_checks())


@pytest.mark.parametrize("everybody", ["0.0.0.0/0", "::/0"])
def test_fr_33_trusting_everybody_is_an_error_at_the_start(settings, everybody):
    settings.TRUSTED_PROXIES = TrustedProxies.read([everybody])

    assert ids_of_errors() == ["leaderboards.E003"]


@pytest.mark.parametrize("rate", ["", "20", "m", "20/week", "-1/m", "20 / m"])
def test_a_rate_that_cannot_be_read_is_an_error_at_the_start(settings, rate):
    settings.AUTH_RATE = rate

    assert ids_of_errors() == ["leaderboards.E004"]
