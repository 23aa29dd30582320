"""The one compile step of a job: nvcc for CUDA, a first import for Python."""

from __future__ import annotations

import shutil
from pathlib import Path

from runners.gpu import process
from runners.gpu.context import Context, python_program
from runners.gpu.contract import CompileResult, Failure, FailureKind, Mode
from runners.gpu.failures import Failed

FIXED_FLAGS = (
    "--std=c++20",
    "-O3",
    "-DNDEBUG",
    "-Xcompiler=-Wno-psabi",
    "-Xcompiler=-fno-strict-aliasing",
    "--expt-extended-lambda",
    "--expt-relaxed-constexpr",
    "-forward-unknown-to-host-compiler",
    "-Xnvlink=--verbose",
    "-Xptxas=--verbose",
    "-Xptxas=--warn-on-spills",
)
# The profiler's source view needs the lines; the code that is generated stays the same.
PROFILE_FLAGS = ("-lineinfo",)

BINARY = "eval.out"
SUBMISSION = "submission.py"
WARM_UP_SEED = "1"
TIME_LIMIT_EXIT_CODE = 114

# torch.utils.cpp_extension passes this to every compiler call, and shows the calls on failure.
EXTENSION_BUILD = "-DTORCH_EXTENSION_NAME"
BUILD_FAILED = ("Error building extension", "ninja: build stopped")


def compile_cuda(context: Context) -> tuple[CompileResult, Failure | None, Path]:
    """Compile the sources; the path is the program's, and exists unless there is a failure.

    Raises Failed when there is no nvcc, or when the job's time is used up.
    """
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise Failed(
            FailureKind.COMPILER_MISSING,
            "nvcc was not found on the machine with the GPU. This is a fault of the service.",
        )
    config = context.config
    allowance = context.allow(config.limits.compile_s, FailureKind.COMPILE_TIME_LIMIT)
    folder = context.workspace.new_folder("build")
    context.workspace.lay_out(folder, config.sources | (config.headers or {}))
    finished = process.run(
        nvcc_command(nvcc, context),
        cwd=folder,
        env=context.environment(),
        bounds=context.bounds(allowance.seconds),
        identity=context.identity,
    )
    failure = None
    if finished.timed_out:
        failure = _too_slow(allowance.kind, allowance.seconds)
    elif finished.exit_code != 0 or not (folder / BINARY).is_file():
        failure = Failure(
            kind=FailureKind.COMPILE_FAILED,
            message=f"nvcc could not compile the submission (exit code {finished.exit_code}).",
        )
    if config.mode is not Mode.PROFILE:
        _remove_sources(folder)
    return (
        _result(finished, nvcc_version=_nvcc_version(nvcc, context), success=failure is None),
        failure,
        folder / BINARY,
    )


def nvcc_command(nvcc: str, context: Context) -> list[str]:
    config = context.config
    arch = config.arch
    target = f"-gencode=arch=compute_{arch},code=sm_{arch}" if arch else "-arch=native"
    return [
        nvcc,
        *FIXED_FLAGS,
        *(PROFILE_FLAGS if config.mode is Mode.PROFILE else ()),
        target,
        *(f"-I{folder}" for folder in config.include_dirs),
        *(f"-D{name}={value}" if value else f"-D{name}" for name, value in config.defines.items()),
        *config.compile_flags,
        *config.sources,
        "-o",
        BINARY,
    ]


def warm_up(context: Context) -> tuple[CompileResult | None, Failure | None]:
    """Import the submission once, so that the extensions that it builds are in its caches.

    How that ends says nothing about the submission, unless the output shows such a build.
    Raises Failed when the job's time is used up.
    """
    config = context.config
    if SUBMISSION not in config.sources:
        return None, None
    allowance = context.allow(config.limits.compile_s, FailureKind.COMPILE_TIME_LIMIT)
    folder = context.workspace.new_folder("warm-up")
    context.workspace.lay_out(folder, config.sources)
    finished = process.run(
        [python_program(), SUBMISSION],
        cwd=folder,
        env=context.environment(POPCORN_SEED=WARM_UP_SEED),
        bounds=context.bounds(allowance.seconds),
        identity=context.identity,
    )
    output = finished.stdout + finished.stderr
    if EXTENSION_BUILD not in output:
        return None, None
    failure = None
    if finished.timed_out:
        failure = _too_slow(allowance.kind, allowance.seconds)
    elif finished.exit_code != 0 and any(text in output for text in BUILD_FAILED):
        failure = Failure(
            kind=FailureKind.COMPILE_FAILED, message="An extension of the submission did not build."
        )
    return _result(finished, nvcc_version="", success=failure is None), failure


def _too_slow(kind: FailureKind, seconds: float) -> Failure:
    return Failure(kind=kind, message=f"Compiling did not end within {seconds:g} s.")


def _result(finished: process.Finished, *, nvcc_version: str, success: bool) -> CompileResult:
    return CompileResult(
        nvcc_found=True,
        nvcc_version=nvcc_version,
        success=success,
        command=finished.command,
        stdout=finished.stdout,
        stderr=finished.stderr,
        exit_code=TIME_LIMIT_EXIT_CODE if finished.timed_out else finished.exit_code,
    )


def _nvcc_version(nvcc: str, context: Context) -> str:
    finished = process.run(
        [nvcc, "--version"],
        cwd=context.workspace.tmp,
        env=context.environment(),
        bounds=context.bounds(20),
        identity=context.identity,
    )
    return finished.stdout.strip()


def _remove_sources(folder: Path) -> None:
    """The program that is measured finds no sources; only the profiler needs them beside it."""
    for path in folder.rglob("*"):
        if path.name != BINARY and (path.is_symlink() or path.is_file()):
            path.unlink()
