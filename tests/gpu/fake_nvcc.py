"""A stand-in for nvcc: the "program" that it makes is the first source, which is a script.

A source that holds the word `syntax-error` does not compile, one with `compile-for-ever` never
ends. Every call is written down beside it.
"""

from __future__ import annotations

import json
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def main() -> int:
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        print("Cuda compilation tools, release 13.0, V13.0.88")
        return 0
    with (HERE / "nvcc.jsonl").open("a") as calls:
        calls.write(json.dumps(arguments) + "\n")
    sources = [name for name in arguments if name.endswith(".cu")]
    text = "".join(pathlib.Path(name).read_text() for name in sources)
    if "compile-for-ever" in text:
        time.sleep(600)
    if "syntax-error" in text:
        print('eval.cu(1): error: expected a ";"', file=sys.stderr)
        return 2
    print("ptxas info : Used 32 registers", file=sys.stderr)
    target = pathlib.Path(arguments[arguments.index("-o") + 1])
    target.write_text(f"#!{sys.executable}\n" + pathlib.Path(sources[0]).read_text())
    target.chmod(0o755)
    return 0


if __name__ == "__main__":
    sys.exit(main())
