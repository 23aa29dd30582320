"""Each call that the wire contract lists, and the test over real HTTP that holds its shape.

The lists are sections 2, 9 and 12 of wire-contract.md; a row without a test here fails.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.shared import SHARED

HERE = Path(__file__).parent
SHAPES, SUBMITTING, BREV = (
    f"submissions/test_{name}.py" for name in ("shapes", "submitting", "brev")
)
DISCOVERY, ADMIN = "operators/test_discovery.py", "operators/test_admin_api.py"
BAN = (
    "identity/test_admin_token.py",
    "test_a_ban_holds_from_the_next_request_on_and_is_lifted_as_fast",
)
INVITES = (ADMIN, "test_invites_are_made_listed_and_revoked")
DELETED_BOARD = (ADMIN, "test_a_leaderboard_with_submissions_is_deleted_by_force_only")
SYNC = ("operators/test_update_problems.py", "test_an_archive_is_synced_and_its_commit_recorded")
LIMITS = (ADMIN, "test_limits_are_set_shown_and_removed")
SWITCH = (ADMIN, "test_the_switch_stops_submissions_and_survives_a_restart")
PROFILED = (
    "submissions/test_profile_shapes.py",
    "test_the_last_event_has_the_shape_of_the_reference_at_both_doors",
)
STATS = (SHAPES, "test_the_figures_of_the_service")
OPERATORS = (SHAPES, "test_what_an_operator_reads_of_it")
DELETED = (SHAPES, "test_after_the_deadline_an_operator_sends_and_then_it_is_deleted")
MADE = (ADMIN, "test_a_leaderboard_is_made_of_a_directory")
RANKING = (SHAPES, "test_the_ranking_and_how_many_are_ranked")
NOT_OFFERED = (ADMIN, "test_what_is_not_offered_says_so")

CALLS_OF_THE_CLI = {
    1: ("identity/test_auth_init.py", "test_an_id_is_a_uuid_and_nobody_s"),
    2: (DISCOVERY, "test_every_leaderboard_is_listed_in_the_shape_of_the_reference"),
    3: (DISCOVERY, "test_gpus_are_those_that_the_leaderboard_has_here_in_any_case"),
    4: (SUBMITTING, "test_an_upload_is_answered_at_once_and_runs_in_the_background"),
    5: (SHAPES, "test_its_own_page"),
    6: PROFILED,
    7: PROFILED,
    8: (BREV, "test_health_offers_the_options"),
    9: (BREV, "test_a_profile_comes_back_as_archives"),
    10: (BREV, "test_a_running_job_is_running"),
    11: (BREV, "test_a_profile_comes_back_as_archives"),
    12: (SHAPES, "test_the_list_of_its_person"),
    13: (SHAPES, "test_its_own_page"),
    14: DELETED,
    15: (DISCOVERY, "test_gpus_of_a_closed_leaderboard_are_for_its_members"),
    16: SWITCH,
    17: STATS,
    18: OPERATORS,
    19: DELETED,
    20: MADE,
    21: DELETED_BOARD,
    22: INVITES,
    23: INVITES,
    24: INVITES,
    25: SYNC,
}
CALLS_OF_OPERATORS = {
    "POST /admin/start": SWITCH,
    "GET /admin/stats": STATS,
    "GET /admin/submissions/{id}": OPERATORS,
    "DELETE /admin/submissions/{id}": DELETED,
    "POST /admin/leaderboards": MADE,
    "DELETE /admin/leaderboards/{name}": DELETED_BOARD,
    "POST /admin/invites": INVITES,
    "GET /admin/leaderboards/{lb}/invites": INVITES,
    "DELETE /admin/invites/{code}": INVITES,
    "POST /admin/update-problems": SYNC,
}
OTHER_CALLS = {
    "GET /runner_queue/{gpu}": (DISCOVERY, "test_a_queue_is_always_told"),
    "GET /submissions/{lb}/{gpu}": RANKING,
    "GET /submission_count/{lb}/{gpu}": RANKING,
    "POST /admin/submission/{lb}/{gpu}/{mode}": DELETED,
    "POST /admin/ban/{user_id}": BAN,
    "POST /admin/application-validations/{lb}/{gpu}": NOT_OFFERED,
    "GET /admin/leaderboards/{lb}/submissions": OPERATORS,
    "DELETE /admin/submissions": (
        SHAPES,
        "test_all_of_a_person_on_a_leaderboard_are_deleted_at_once",
    ),
    "POST /admin/export-hf": NOT_OFFERED,
    "POST /admin/leaderboards/{lb}/visibility": (ADMIN, "test_visibility_is_changed_and_audited"),
    "PUT /admin/leaderboards/{lb}/rate-limits": LIMITS,
    "GET /admin/leaderboards/{lb}/rate-limits": LIMITS,
    "DELETE /admin/leaderboards/{lb}/rate-limits/{category}": LIMITS,
    "GET /docs": ("test_site.py", "test_the_schema_and_its_page_are_where_tools_look_for_them"),
}


@pytest.mark.parametrize(
    "file_and_test",
    sorted({*CALLS_OF_THE_CLI.values(), *CALLS_OF_OPERATORS.values(), *OTHER_CALLS.values()}),
)
def test_the_test_of_a_row_exists(file_and_test):
    file, test = file_and_test

    tree = ast.parse((HERE / file).read_text())

    assert test in [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


@pytest.mark.skipif(SHARED is None, reason="the wire contract is not beside the checkout")
@pytest.mark.parametrize(
    ("number", "rows"), [(2, CALLS_OF_THE_CLI), (9, CALLS_OF_OPERATORS), (12, OTHER_CALLS)]
)
def test_every_row_of_the_contract_has_a_test(number, rows):
    contract = (SHARED / "design" / "wire-contract.md").read_text()
    section = re.split(r"^## ", contract, flags=re.MULTILINE)[number + 1]
    assert section.startswith(f"{number}.")

    listed = re.findall(r"^\| `?(\d+|[A-Z]+ /[^`\s]*)", section, flags=re.MULTILINE)

    assert {int(row) if row.isdigit() else row for row in listed} == rows.keys()
