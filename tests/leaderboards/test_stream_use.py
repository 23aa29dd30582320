"""FR-17: the word is no offence, the use is worth a warning."""

from __future__ import annotations

import time

import pytest

from leaderboards.stream_use import find_stream_use, warn_of_stream_use

INLINE = '''
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <cuda_runtime.h>
// cudaStreamCreate(&no);
void launch() {
    cudaStream_t side;
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
}
"""
'''


@pytest.mark.parametrize(
    "text",
    [
        "# feeds the downstream op",
        "bitstream = 1",
        "x = 1  # torch.cuda.Stream() would be wrong here",
        's = "torch.cuda.Stream()"',
        "'''\ntorch.cuda.Stream()\n'''",
        'f("it\\"s", "cuda.stream(")',
        "torch.cuda.current_stream().synchronize()",
        "upstream.cuda_stream(x)",
        "io.StringIO(stream)",
        '"""How it works: cudaStreamCreate is never called."""',
    ],
)
def test_fr_17_harmless_python_gives_no_warning(text):
    assert warn_of_stream_use("submission.py", text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "// cudaStreamCreate(&s);",
        "/* cudaStreamCreate(&s);\n */ int x;",
        'const char* s = "cudaStreamCreate(&s)";',
        'auto s = R"x(cudaStreamCreate(&s))x";',
        "void f(cudaStream_t stream) { k<<<1, 1, 0, stream>>>(); }",
        "int downstream = 1;",
    ],
)
def test_fr_17_harmless_cuda_gives_no_warning(text):
    assert warn_of_stream_use("submission.cu", text) == ""


@pytest.mark.parametrize(
    ("name", "text", "line", "code"),
    [
        ("s.py", "import torch\ns = torch.cuda.Stream()\n", 2, "cuda.Stream"),
        ("s.py", "\n\nwith torch.cuda.stream(s):\n    pass\n", 3, "cuda.stream"),
        ("s.py", "s = torch . cuda . Stream (\n)", 1, "cuda . Stream"),
        ("s.py", "from torch.cuda import Stream\n", 1, "from torch.cuda import Stream"),
        ("s.py", "s = cupy.cuda.ExternalStream(1)", 1, "cuda.ExternalStream"),
        ("s.py", "t = f'{torch}'; s = torch.Stream(device='cuda')", 1, "torch.Stream"),
        ("s.py", INLINE, 9, "cudaStreamCreateWithFlags"),
        ("s.cu", "// a\ncudaStreamCreate(&s);", 2, "cudaStreamCreate"),
        ("s.cuh", "/* a\n */ cudaStreamCreateWithPriority (&s, 0, 0);", 2, None),
        ("s.cpp", "auto s = at::cuda::getStreamFromPool();", 1, "getStreamFromPool"),
    ],
)
def test_fr_17_real_use_is_told_with_its_line(name, text, line, code):
    uses = find_stream_use(name, text)

    assert [use.line for use in uses] == [line]
    assert code is None or uses[0].code == code
    assert f"line {line}" in warn_of_stream_use(name, text)


def test_fr_17_the_warning_counts_further_places():
    warning = warn_of_stream_use("s.cu", "cudaStreamCreate(&a);\n" * 3)

    assert "in line 1 and 2 more" in warning


@pytest.mark.parametrize(
    "text",
    [
        '"""' * 100_000 + "\\",
        "'" * 333_333,
        "/*" * 400_000,
        '\\"""' * 200_000,
        'R"(' * 300_000,
        "((((((((((" * 90_000,
        "from torch.cuda import " * 40_000,
        "cuda" + " " * 900_000,
        "cudaStreamCreate(\n" * 55_000,
        '"""' + "cudaA(" * 150_000,
    ],
)
@pytest.mark.parametrize("name", ["s.py", "s.cu"])
def test_a_hostile_file_of_a_megabyte_is_searched_in_a_moment(name, text):
    started = time.process_time()

    find_stream_use(name, text)

    # Far above what it takes: a search whose time grows with the square takes hours.
    assert time.process_time() - started < 20
