"""A stand-in for ncu that obeys its flags. Its orders lie in plan.json beside it, for the code
under test does not pass the environment on. Copied to a folder on PATH under the name `ncu`.

    version     what --version says, "2025.2.1.0" if absent
    log         messages for --log-file; absent: an old ncu, without that file
    stdout, stderr   printed before anything else
    run         whether the program after `--` is run, true if absent
    report      a file beside plan.json to write as the report, or null
    report_before   the same, written before the program runs
    sleep       seconds after the program ended
    held_by     a file beside plan.json; the capture goes on when it is gone
    stubborn    ignore SIGINT and SIGTERM
    rc          the exit code, that of the program if absent
    import_rc, text, csv   what the two exports do
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def main() -> int:
    plan = json.loads((HERE / "plan.json").read_text())
    arguments = sys.argv[1:]
    with (HERE / "calls.jsonl").open("a") as calls:
        calls.write(json.dumps({"argv": arguments, "env": dict(os.environ)}) + "\n")
    if arguments == ["--version"]:
        print("NVIDIA (R) Nsight Compute Command Line Profiler")
        print(f"Version {plan.get('version', '2025.2.1.0')} (build 1) (public-release)")
        return 0
    if "--import" in arguments:
        sys.stdout.write(plan.get("csv" if "--csv" in arguments else "text", ""))
        return int(plan.get("import_rc", 0))
    return capture(plan, arguments)


def capture(plan: dict, arguments: list[str]) -> int:
    if plan.get("stubborn"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGINT, lambda *_: finish(plan, arguments, 1))
    print(plan.get("stdout", ""), end="", flush=True)
    print(plan.get("stderr", ""), end="", file=sys.stderr, flush=True)
    if "log" in plan:
        pathlib.Path(value_of(arguments, "--log-file")).write_text(plan["log"])
    write_report(plan.get("report_before"), arguments)
    rc = 0
    if plan.get("run", True):
        program = arguments[arguments.index("--") + 1 :]
        descriptor = int(os.environ["POPCORN_FD"])
        rc = subprocess.run(program, check=False, pass_fds=(descriptor,)).returncode
    time.sleep(plan.get("sleep", 0))
    while "held_by" in plan and (HERE / plan["held_by"]).exists():
        time.sleep(0.05)
    finish(plan, arguments, plan.get("rc", rc))
    return 0


def finish(plan: dict, arguments: list[str], rc: int) -> None:
    write_report(plan.get("report"), arguments)
    sys.stdout.flush()
    os._exit(rc & 0xFF)


def write_report(name: str | None, arguments: list[str]) -> None:
    if name:
        shutil.copyfile(HERE / name, value_of(arguments, "--export"))


def value_of(arguments: list[str], option: str) -> str:
    return arguments[arguments.index(option) + 1]


if __name__ == "__main__":
    sys.exit(main())
