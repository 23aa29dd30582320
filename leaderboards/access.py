"""Who may see a closed leaderboard, and who may submit to it (wire-contract.md, 4.2, 8 and 13.2)."""

from __future__ import annotations

from leaderboards.exceptions import LeaderboardClosed
from leaderboards.models import ClientId, Invite, Leaderboard, PopcornUser
from runners.exceptions import ServiceError


class SignInNeeded(ServiceError):
    code = "sign_in_needed"
    http_status = 401


def has_access(board: Leaderboard, user: PopcornUser | None) -> bool:
    """Public boards are everybody's, closed ones of operators and of who claimed an invite."""
    if board.visibility == Leaderboard.Visibility.PUBLIC:
        return True
    if user is None:
        return False
    return user.is_staff or (
        Invite.objects.standing().filter(claimed_by=user, leaderboards=board).exists()
    )


def require_reader(board: Leaderboard, user: PopcornUser | None) -> None:
    """Raises SignInNeeded (401) or LeaderboardClosed (403)."""
    if has_access(board, user):
        return
    if user is None:
        raise SignInNeeded(f"leaderboard {board.name!r} is closed: send the id of your CLI")
    raise LeaderboardClosed(
        f"leaderboard {board.name!r} is closed: join it with an invite code first"
    )


def require_submitter(board: Leaderboard, user: PopcornUser, via: ClientId.Kind) -> None:
    """Raises LeaderboardClosed."""
    closed = board.visibility == Leaderboard.Visibility.CLOSED
    if closed and via != ClientId.Kind.CLI:
        raise LeaderboardClosed(
            f"leaderboard {board.name!r} is closed and takes submissions of the CLI only"
        )
    require_reader(board, user)
