from __future__ import annotations

import textwrap
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leaderboards.located_yaml import TaskFileError
from leaderboards.task_definition import SUBMISSION_MARK, TaskDefinition
from leaderboards.task_files import TaskFile, read_competition, read_task
from runners.gpu import wire
from runners.gpu.contract import case_line

PYTHON_TASK = """\
files:
  - {name: submission.py, source: "@SUBMISSION@"}
  - {name: eval.py, source: eval.py}
lang: py
description: Sum every row.
config:
  main: eval.py
"""


@pytest.fixture
def read(tmp_path):
    (tmp_path / "problem").mkdir()
    (tmp_path / "problem/eval.py").write_text("print('evaluator')\n")

    def call(text: str | bytes) -> TaskFile:
        content = text if isinstance(text, bytes) else text.encode()
        (tmp_path / "problem/task.yml").write_bytes(content)
        return read_task(tmp_path / "problem/task.yml", root=tmp_path)

    return call


def complaint(call, text: str | bytes) -> str:
    with pytest.raises(TaskFileError) as caught:
        call(text)
    assert caught.value.path == Path("problem/task.yml")
    return str(caught.value)


def test_what_a_task_leaves_out_has_its_defaults(read):
    task = read(PYTHON_TASK)

    definition = task.definition
    assert (task.description, task.gpus) == ("Sum every row.", ())
    assert definition.files == {"submission.py": SUBMISSION_MARK, "eval.py": "print('evaluator')\n"}
    assert (definition.lang, definition.main) == ("py", "eval.py")
    assert (definition.tests, definition.benchmarks) == ((), ())
    assert (definition.test_timeout, definition.ranked_timeout) == (180, 180)
    assert (definition.ranking_by, definition.multi_gpu, definition.seed) == ("last", False, None)


def test_every_key_of_a_task_is_read(read, tmp_path):
    (tmp_path / "problem/template.py").write_text("pass\n")
    task = read(
        PYTHON_TASK
        + textwrap.dedent("""\
            tests:
              - {seed: 101, rows: 64}
            benchmarks:
              - {rows: 1024, dtype: fp16, seed: -7}
            test_timeout: 1.5
            benchmark_timeout: 240
            ranked_timeout: 420
            ranking_by: geom
            libraries: [cutlass]
            seed: 42
            templates: {Python: template.py}
            gpus: [B200, H100, B200]
            validation: {version: 1, script: check.py}
        """)
    )

    definition = task.definition
    assert [list(spec.items()) for spec in definition.benchmarks] == [
        [("rows", 1024), ("dtype", "fp16"), ("seed", -7)]
    ]
    assert list(definition.tests[0]) == ["seed", "rows"]
    assert (definition.test_timeout, definition.benchmark_timeout) == (1.5, 240)
    assert (definition.ranked_timeout, definition.ranking_by) == (420, "geom")
    assert (definition.libraries, definition.seed) == (("cutlass",), 42)
    assert task.gpus == ("B200", "H100")


def test_a_cuda_task_names_what_is_compiled(read, tmp_path):
    (tmp_path / "common").mkdir()
    (tmp_path / "common/utils.cuh").write_text("#pragma once\n")
    (tmp_path / "problem/eval.cu").write_text("int main() {}\r\n", newline="")

    definition = read("""\
files:
  - {name: submission.cu, source: "@SUBMISSION@"}
  - {name: eval.cu, source: eval.cu}
  - {name: include/utils.cuh, source: ../common/utils.cuh}
lang: cu
description: |
  Two lines,
  kept.
config:
  sources: [eval.cu, submission.cu]
  include_dirs: [include]
  defines: {TILE: 16, KIND: fast}
  compile_flags: ["-lineinfo"]
""").definition

    assert definition.sources == ("eval.cu", "submission.cu")
    assert definition.files["eval.cu"] == "int main() {}\r\n"
    assert definition.files["include/utils.cuh"] == "#pragma once\n"
    assert definition.include_dirs == ("include",)
    assert definition.defines == {"TILE": "16", "KIND": "fast"}
    assert definition.compile_flags == ("-lineinfo",)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("43_214", 43214),
        ("9007199254740993", 9007199254740993),
        ("-5", -5),
        ("0x10", 16),
        ("normal", "normal"),
        ('"true"', "true"),
        ("fp16.e4m3-x", "fp16.e4m3-x"),
        ("&a b", "b"),
    ],
)
def test_fr_40_a_value_keeps_the_type_that_yaml_gave_it(read, value, kept):
    (spec,) = read(f"{PYTHON_TASK}benchmarks:\n  - {{x: {value}}}\n").definition.benchmarks

    assert spec == {"x": kept}
    assert type(spec["x"]) is type(kept)
    assert case_line(spec) == f"x: {kept}"


@pytest.mark.parametrize(
    "value",
    [
        "[64, 128]",
        "1e-3",
        "-0.5",
        "yes",
        "True",
        '"a; b: c"',
        "null",
        "~",
        "{a: 1}",
        '""',
        "1.5",
        "010",
        "1:30",
        "2020-01-31",
        '"1"',
        '"a\\nb"',
        "ä",
        "99999999999999999999",
        ".nan",
        "!x y",
    ],
)
def test_fr_40_a_value_that_would_change_on_the_way_is_refused_with_its_place(read, value):
    message = complaint(read, f"{PYTHON_TASK}benchmarks:\n  - {{size: 1}}\n  - {{x: {value}}}\n")

    assert message.startswith("problem/task.yml, line 10, benchmarks[1].x: ")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("tests:\n  - {a: 1, a: 2}\n", "line 9, tests[0].a: this key is there twice"),
        ("lang: cu\n", "line 8, lang: this key is there twice"),
        ("tests:\n\t- {a: 1}\n", "line 9: not YAML"),
        ("tests:\n  - &b {a: 1}\n  - {<<: *b, c: 2}\n", "line 10, tests[1]: merge keys"),
        ("tests:\n  - {a b: 1}\n", "line 9, tests[0].a b: keys consist"),
        ("tests:\n  - {}\n", "line 9, tests[0]: this entry has no values"),
        ("tests:\n  - 5\n", "line 9, tests[0]: a mapping is wanted"),
        ("tests: {a: 1}\n", "line 8, tests: a list is wanted"),
        ("surprise: 1\n", "line 8, surprise: unknown key"),
        ("test_timeout: 0\n", "line 8, test_timeout: a time in seconds"),
        ("test_timeout: .inf\n", "line 8, test_timeout: a time in seconds"),
        ("test_timeout: soon\n", "line 8, test_timeout: a whole number"),
        ("ranking_by: median\n", "line 8, ranking_by: 'median' is none of"),
        ("multi_gpu: 1\n", "line 8, multi_gpu: true or false"),
        ("seed: 1.5\n", "line 8, seed: a whole number"),
        ("gpus: [B 200]\n", "line 8, gpus[0]: 'B 200' is not the name"),
        ("templates: {Fortran: x.f}\n", "line 8, templates.Fortran: 'Fortran' is none of"),
        ("templates: {Python: gone.py}\n", "line 8, templates.Python: 'gone.py': there is no"),
        ("--- \nlang: py\n", "line 8: not YAML"),
    ],
)
def test_a_complaint_names_file_line_and_key(read, text, place):
    assert complaint(read, PYTHON_TASK + text).startswith(f"problem/task.yml, {place}")


def test_fr_40_an_alias_means_what_it_stands_for(read):
    text = f"{PYTHON_TASK}tests: &cases\n  - {{a: 1}}\nbenchmarks: *cases\n"

    assert read(text).definition.benchmarks == ({"a": 1},)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("description: Sum every row.\n", "", "the key 'description' is missing"),
        ("lang: py", "lang: hip", "'hip' is none of"),
        ("main: eval.py", "main: other.py", "line 7, config.main: 'other.py' is not among"),
        ("main: eval.py", "start: eval.py", "config.start: unknown key"),
        ('"@SUBMISSION@"', "eval.py", "exactly one file must be @SUBMISSION@, not 0"),
        ("source: eval.py", 'source: "@SUBMISSION@"', "must be @SUBMISSION@, not 2"),
        ("name: eval.py", "name: submission.py", "line 3, files[1].name"),
        ("name: eval.py", "name: ../eval.py", "is not a plain relative file name"),
        ("name: eval.py", "name: /eval.py", "is not a plain relative file name"),
        ("name: eval.py", "name: a/../eval.py", "is not a plain relative file name"),
        ("name: eval.py", "name: -o.py", "is not a plain relative file name"),
        ("source: eval.py", "source: gone.py", "line 3, files[1].source: 'gone.py': there is no"),
        ("source: eval.py", "source: .", "there is no such file"),
        ("source: eval.py", "source: ../../secret", "leads out of the checkout"),
        ("source: eval.py", "source: /etc/hostname", "leads out of the checkout"),
        ("source: eval.py", "source: ../.git/config", "belongs to git"),
        ("source: eval.py", "source: link.py", "leads out of the checkout"),
        ("source: eval.py", "source: latin1.py", "not UTF-8 text (byte 0)"),
        ("source: eval.py", "source: nul.py", "a NUL byte"),
        ("source: eval.py", "source: large.py", "larger than"),
    ],
)
def test_files_that_cannot_be_used_are_refused(read, tmp_path, old, new, words):
    secret = tmp_path.parent / "secret"
    secret.write_text("a password\n")
    problem = tmp_path / "problem"
    (problem / "link.py").symlink_to(secret)
    (problem / "latin1.py").write_bytes(b"\xe4")
    (problem / "nul.py").write_bytes(b"a\0")
    (problem / "large.py").write_bytes(b"#" * (4 * 2**20 + 1))
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("[core]\n")

    assert words in complaint(read, PYTHON_TASK.replace(old, new))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100000,
        b"{a: 1",
        b"a: \x01",
        b"- 1\n",
        b"#" * 1000001,
        b"!!python/object:os.system {}",
        b"&a [*a]",
        b"? [1]\n: 2",
    ],
)
def test_what_is_no_task_at_all_is_refused(read, content):
    complaint(read, content)


def test_a_task_file_that_leads_out_of_the_checkout_is_not_read(tmp_path):
    (tmp_path / "elsewhere.yml").write_text(PYTHON_TASK)
    root = tmp_path / "checkout"
    root.mkdir()
    (root / "task.yml").symlink_to(tmp_path / "elsewhere.yml")

    with pytest.raises(TaskFileError, match="leads out of the checkout"):
        read_task(root / "task.yml", root=root)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("{size: 1}", "tests[0]: a multi-GPU task needs world_size"),
        ("{size: 1, world_size: 0}", "tests[0].world_size: world_size is at least 1"),
        ("{size: 1, world_size: four}", "tests[0].world_size: a whole number is wanted"),
    ],
)
def test_fr_08_bad_world_sizes_are_refused(read, entry, words):
    assert words in complaint(read, f"{PYTHON_TASK}multi_gpu: true\ntests: [{entry}]\n")


def test_fr_08_a_multi_gpu_task_is_read(read):
    text = f"{PYTHON_TASK}multi_gpu: true\nbenchmarks:\n  - {{size: 1, world_size: 4}}\n"

    assert read(text).definition.multi_gpu is True


def test_a_task_read_back_from_its_json_has_the_same_digest(read):
    definition = read(f"{PYTHON_TASK}test_timeout: 7\ntests:\n  - {{b: 1, a: x}}\n").definition

    again = wire.loads(TaskDefinition, definition.to_json().encode(), max_bytes=10_000)

    assert again == definition
    assert again.sha256 == definition.sha256


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers() | st.text() | st.floats()))
def test_fr_40_any_case_is_carried_exactly_or_refused(read, spec):
    text = PYTHON_TASK + yaml.safe_dump({"tests": [spec]}, sort_keys=False)
    refused, kept = None, None
    try:
        (kept,) = read(text).definition.tests
    except TaskFileError as error:
        refused = error

    assert refused is not None or kept == spec


COMPETITION = """\
name: Demo
deadline: "2030-01-31"
problems:
  - {directory: a, name: inherits}
  - {directory: b, name: own, deadline: 2031-02-03, gpus: [B200]}
  - {directory: c, name: with_time, deadline: "2031-02-03 14:30"}
  - {directory: d, name: empty, deadline: ""}
"""


def test_a_problem_without_a_deadline_has_that_of_its_competition(tmp_path):
    (tmp_path / "set.yaml").write_text(COMPETITION)

    competition = read_competition(tmp_path / "set.yaml", root=tmp_path)

    inherited = datetime(2030, 1, 31, tzinfo=UTC)
    assert competition.errors == ()
    assert {problem.name: problem.deadline for problem in competition.problems} == {
        "inherits": inherited,
        "own": datetime(2031, 2, 3, tzinfo=UTC),
        "with_time": datetime(2031, 2, 3, 14, 30, tzinfo=UTC),
        "empty": inherited,
    }
    assert competition.problems[1].gpus == ("B200",)


def test_a_bad_entry_of_a_competition_costs_only_itself(tmp_path):
    (tmp_path / "set.yaml").write_text(
        "problems:\n"
        "  - {directory: a, name: good}\n"
        "  - {directory: b}\n"
        "  - {directory: c, name: late, deadline: tomorrow}\n"
        "  - {name: nowhere}\n"
    )

    competition = read_competition(tmp_path / "set.yaml", root=tmp_path)

    assert [problem.name for problem in competition.problems] == ["good"]
    assert [(name, error.line) for name, error in competition.errors] == [
        ("problems[1]", 3),
        ("late", 4),
        ("nowhere", 5),
    ]
