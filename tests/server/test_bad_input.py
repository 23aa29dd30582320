"""Everything that issue 1 lists under "Bad input": a clear answer, a row, and no GPU work."""

from __future__ import annotations

import pytest

from tests.server.popcorn import PATH, SUBMISSION, form


def refused(service, answer):
    """The refused request that the answer's id leads to; there must be no other trace of it."""
    rows = service.rows(
        "SELECT * FROM profiling_profilerequest WHERE request_id = ?",
        answer.headers["X-Request-Id"],
    )
    assert len(rows) == 1
    assert rows[0]["job_id"] is None
    return rows[0]


def assert_refused(service, answer, status, words=""):
    """Status, one readable string, and the very same words in the row and in the audit trail."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    detail = answer.json()["detail"]
    assert isinstance(detail, str)
    assert words in detail
    assert detail.isascii() or "…" in detail
    row = refused(service, answer)
    assert (row["refusal_status"], row["refusal_reason"]) == (status, detail)
    assert row["refusal_code"] == answer.json()["code"]
    verbs = service.rows(
        "SELECT verb, actor_label FROM leaderboards_auditevent WHERE request_id = ?",
        answer.headers["X-Request-Id"],
    )
    assert [(v["verb"], v["actor_label"]) for v in verbs] == [
        ("profile.refused", "alice (id-alice)")
    ]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 400),
        ({"X-Popcorn-Cli-Id": ""}, 400),
        ({"X-Popcorn-Cli-Id": "nobody"}, 401),
        ({"X-Popcorn-Cli-Id": "revoked-cli-id"}, 401),
        ({"X-Popcorn-Cli-Id": "issued-cli-id"}, 401),  # nobody has activated it
        ({"X-Popcorn-Cli-Id": b"\xff\xfe\xe9"}, 401),
        ({"X-Popcorn-Cli-Id": "x" * 5000}, 401),
        ({"X-Web-Auth-Id": "alice-cli-id"}, 400),
        ({"Authorization": "Bearer alice-cli-id"}, 400),
    ],
)
def test_a_missing_or_unknown_identity_is_refused_and_leaves_no_row(service, headers, status):
    before = service.rows("SELECT count(*) AS n FROM profiling_profilerequest")

    with service.client(cli_id=None) as client:
        answer = client.post(PATH, headers=headers, **form())

    assert answer.status_code == status
    assert isinstance(answer.json()["detail"], str)
    assert service.rows("SELECT count(*) AS n FROM profiling_profilerequest") == before
    if status == 401:
        assert answer.headers["WWW-Authenticate"]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/profile/nosuch/B200", 404, "no leaderboard 'nosuch'"),
        ("/profile/rowsum/RTX9090", 400, "no GPU 'RTX9090'"),
        ("/profile/other/B200", 400, "H100"),  # a GPU that this leaderboard is not on
        ("/profile/rowsum/MI300", 400, "not an NVIDIA GPU"),
        ("/profile/rowsum/L4x4", 400, "single GPU"),
        ("/profile/rowsum/CPU", 400, "not an NVIDIA GPU"),
        ("/profile/over/B200", 400, "deadline"),
        ("/profile/%2e%2e/B200", 404, "no leaderboard"),
        ("/profile/row%20sum/B200", 404, "no leaderboard"),
    ],
)
def test_a_place_that_does_not_exist_is_refused(service, path, status, words):
    with service.client() as client:
        answer = client.post(path, **form())

    assert_refused(service, answer, status, words)


@pytest.mark.parametrize(
    ("sent", "status", "words"),
    [
        ({"data": {"benchmark_index": "0"}}, 415, "multipart"),  # a form, but not multipart
        ({"json": {"file": "code"}}, 415, "multipart"),
        ({"content": b"code"}, 415, "multipart"),
        ({"files": {"upload": ("submission.py", SUBMISSION, "")}}, 422, "file"),
        ({"files": {"file": (None, SUBMISSION, "")}}, 422, "file"),  # a text part
        (
            {"files": [("file", ("a.py", b"a", "")), ("file", ("b.py", b"b", ""))]},
            422,
            "one file only",
        ),
        (form(content=b""), 400, "empty"),
        (form(content=b"#" * 1_000_001), 413, "1,000,000"),
        (form(content="# é".encode("latin-1")), 400, "UTF-8"),
        (form(content="# code".encode("utf-16")), 400, "UTF-16"),
        (form(content=b"\x89PNG\r\n\x1a\n"), 400, "PNG"),
        (form(content=b"a = 1\0"), 400, "NUL"),
        (form(name="submission.txt"), 400, ".py"),
        (form(name="submission.PY"), 400, ".py"),
        (form(name="submission"), 400, ".py"),
        (form(content=b"#!POPCORN leaderboard other\n" + SUBMISSION), 400, "directive"),
    ],
)
def test_a_file_that_cannot_be_profiled_is_refused(service, sent, status, words):
    """FR-26."""
    with service.client() as client:
        answer = client.post(PATH, **sent)

    assert_refused(service, answer, status, words)


@pytest.mark.parametrize(
    "body",
    [
        b"no boundary here",
        b"--x\r\nContent-Disposition: form-data; name=",
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.py"\r\n\r\ncode',
        b"--x--\r\n",
        b"",
    ],
)
def test_a_broken_multipart_body_is_never_a_server_error(service, body):
    """FR-26: also one whose last boundary never comes."""
    with service.client() as client:
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        answer = client.post(PATH, content=body, headers=headers)

    assert_refused(service, answer, 422, "file")


def test_too_many_parts_are_refused(service):
    parts = [("benchmark_index", (None, "1", "")) for _ in range(500)]

    with service.client() as client:
        answer = client.post(PATH, files=parts)

    assert_refused(service, answer, 400, "too many parts")


@pytest.mark.parametrize(
    ("option", "value", "status", "words"),
    [
        ("benchmark_index", "3", 400, "0 to 2"),
        ("benchmark_index", "-1", 422, "0 to 2"),
        ("benchmark_index", "1.5", 422, "0 to 2"),
        ("benchmark_index", "1.0", 422, "0 to 2"),
        ("benchmark_index", "abc", 422, "0 to 2"),
        ("benchmark_index", "", 422, "0 to 2"),
        ("benchmark_index", "0,2", 422, "0 to 2"),
        ("benchmark_index", "1_0", 422, "0 to 2"),
        ("benchmark_index", "\u0661", 422, "0 to 2"),  # a digit, but not one of ours
        ("benchmark_index", ["0", "0"], 422, "more than once"),
        ("benchmark_index", "9" * 30, 422, "0 to 2"),
        ("benchmark_index", "999999", 400, "0 to 2"),
        ("ncu_kernel_name", "", 422, "ncu_kernel_name"),
        ("ncu_kernel_name", "a\0b", 400, "ncu_kernel_name"),
        ("ncu_kernel_name", "k" * 1025, 422, "1024"),
        ("ncu_kernel_name", "k" * 5000, 422, "1024"),
        ("ncu_kernel_name", "--set", 422, "ncu_kernel_name"),
        ("ncu_kernel_name", "regex:(", 422, "regular expression"),
        ("ncu_kernel_name", "regex:", 422, "regular expression"),
        ("ncu_kernel_name_base", "short", 400, "function, demangled, mangled"),
        ("ncu_kernel_name_base", "", 400, "ncu_kernel_name_base"),
        ("ncu_kernel_name_base", "Function", 400, "ncu_kernel_name_base"),
        ("ncu_launch_count", "0", 422, "1 to 1000"),
        ("ncu_launch_count", "-1", 422, "1 to 1000"),
        ("ncu_launch_count", "ten", 422, "1 to 1000"),
        ("ncu_launch_count", "", 422, "1 to 1000"),
        ("ncu_launch_count", "100000", 422, "1 to 1000"),
        ("ncu_launch_count", "9" * 40, 422, "1 to 1000"),
    ],
)
def test_a_bad_option_is_refused_by_name_before_any_gpu(service, option, value, status, words):
    """FR-01, FR-04, FR-07."""
    with service.client() as client:
        answer = client.post(PATH, **form(**{option: value}))

    assert_refused(service, answer, status, words)
    assert option in answer.json()["detail"]


@pytest.mark.parametrize(
    "path", ["/profile/ROWSUM/b200", "/profile/RowSum/B200", "//profile/rowsum//B200"]
)
def test_names_in_other_case_and_doubled_slashes_work(service, path):
    with service.client() as client:
        answer = client.post(service.base_url + path, headers={"Prefer": "respond-async"}, **form())

    assert answer.status_code == 202, answer.text
    row = service.rows(
        "SELECT leaderboard_name, gpu FROM profiling_profilerequest WHERE request_id = ?",
        answer.headers["X-Request-Id"],
    )
    assert row == [{"leaderboard_name": "rowsum", "gpu": "B200"}]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"\xef\xbb\xbfa = 1\r\n", "submission.py"),
        (b"#" * 1_000_000, "submission.cu"),
        (SUBMISSION, 'a "quoted" name.py'),
        (SUBMISSION, "名前.py"),
    ],
)
def test_odd_but_good_uploads_are_taken(service, content, name):
    """FR-26: a byte order mark, CRLF, the very limit, and names that need escapes."""
    with service.client() as client:
        answer = client.post(PATH, headers={"Prefer": "respond-async"}, **form(content, name))

    assert answer.status_code == 202, answer.text


@pytest.mark.parametrize(
    "options",
    [
        {"benchmark_index": "0"},
        {"benchmark_index": "2"},
        {"ncu_kernel_name": "k" * 1024},
        {"ncu_kernel_name": "regex:^gemm.*", "ncu_kernel_name_base": "demangled"},
        {"ncu_launch_count": "1"},
        {"ncu_launch_count": "1000"},
    ],
)
def test_good_options_are_taken_as_they_are(service, options):
    """FR-07."""
    with service.client() as client:
        answer = client.post(PATH, headers={"Prefer": "respond-async"}, **form(**options))
        facts = client.get(answer.json()["urls"]["self"]).json()

    assert {name: str(value) for name, value in facts["capture_options"].items()} == options
    index = options.get("benchmark_index")
    assert sorted(facts["benchmark_specs"]) == ([index] if index else ["0", "1", "2"])


def test_a_banned_person_is_refused_and_may_still_read(service):
    with service.client("mallory-cli-id") as client:
        answer = client.post(PATH, **form())
        listed = client.get("/api/profile-requests/")

    assert answer.status_code == 403
    assert "forged results" in answer.json()["detail"]
    assert refused(service, answer)["refusal_code"] == "banned"
    assert listed.json()["results"] == []
