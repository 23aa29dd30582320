"""What went wrong at Modal, as a kind for operators and in words for a kernel author.

None of it is told as the submission's fault, with one exception that only the submission can
cause: more memory than the container has.
"""

from __future__ import annotations

import aiohttp
import grpclib.exceptions
import httpx
import modal.exception
from modal_proto import api_pb2

from runners.backends.base import RUN_LOST, START_UNKNOWN
from runners.exceptions import RunnerFault

_NOT_YOURS = "This is a fault of the service, not of your submission"
_OPERATORS = f"{_NOT_YOURS}; its operators have to mend it, then send it again."
_WAITS = f"{_NOT_YOURS}; it goes on when the provider answers again."

# In this order: the first class that matches. (class, kind, retryable, words)
_ERRORS: tuple[tuple[type[BaseException], str, bool, str], ...] = (
    (
        modal.exception.AuthError,
        "modal_authentication",
        False,
        f"The GPU provider refused the service's credentials. {_OPERATORS}",
    ),
    (
        modal.exception.PermissionDeniedError,
        "modal_permission",
        False,
        f"The service's account at the GPU provider may not do this. {_OPERATORS}",
    ),
    (
        modal.exception.NotFoundError,
        "modal_not_deployed",
        False,
        f"This GPU type is not deployed at the GPU provider. {_OPERATORS}",
    ),
    (
        modal.exception.ResourceExhaustedError,
        "modal_throttled",
        True,
        f"The GPU provider asks the service to slow down. {_WAITS}",
    ),
    (
        modal.exception.InvalidError,  # and ConflictError below it
        "modal_refused",
        False,
        f"The GPU provider did not accept the service's request. {_OPERATORS}",
    ),
    (
        modal.exception.UnimplementedError,
        "modal_refused",
        False,
        f"The GPU provider does not know the service's request. {_OPERATORS}",
    ),
    (
        TimeoutError,
        "modal_unreachable",
        True,
        f"The GPU provider does not answer. {_WAITS}",
    ),
    (
        grpclib.exceptions.StreamTerminatedError,
        "modal_unreachable",
        True,
        f"The connection to the GPU provider was lost. {_WAITS}",
    ),
    (
        modal.exception.ConnectionError,
        "modal_unreachable",
        True,
        f"The GPU provider cannot be reached. {_WAITS}",
    ),
    (OSError, "modal_unreachable", True, f"The GPU provider cannot be reached. {_WAITS}"),
)
_OUTAGE = ("modal_outage", True, f"The GPU provider has a temporary failure. {_WAITS}")

# The provider answered, and the answer is no: nothing was started.
_REFUSALS = (
    modal.exception.AuthError,
    modal.exception.PermissionDeniedError,
    modal.exception.NotFoundError,
    modal.exception.ResourceExhaustedError,
    modal.exception.InvalidError,
    modal.exception.UnimplementedError,
)

# What the calls of the client are known to raise; anything else is a mistake of ours.
EXPECTED = (
    modal.exception.Error,
    grpclib.exceptions.StreamTerminatedError,
    aiohttp.ClientError,
    httpx.HTTPError,
    OSError,  # with TimeoutError
)


def fault_of(error: BaseException) -> RunnerFault:
    """The fault that a failed call to the provider is; the error's own text is for the log."""
    for kind_of_error, kind, retryable, words in _ERRORS:
        if isinstance(error, kind_of_error):
            return RunnerFault(words, kind=kind, retryable=retryable)
    kind, retryable, words = _OUTAGE
    return RunnerFault(words, kind=kind, retryable=retryable)


def start_fault_of(error: BaseException) -> RunnerFault:
    """As `fault_of`, for the call that starts a run: START_UNKNOWN unless it was refused."""
    fault = fault_of(error)
    if isinstance(error, _REFUSALS):
        return fault
    return RunnerFault(str(fault), kind=START_UNKNOWN, retryable=True)


_RESULT = api_pb2.GenericResult
_OUTCOMES = {
    _RESULT.GENERIC_STATUS_FAILURE: (
        "modal_run_failed",
        f"The GPU side of the service failed. {_OPERATORS}",
    ),
    _RESULT.GENERIC_STATUS_TERMINATED: (
        "modal_cancelled",
        "The run was cancelled at the GPU provider, by somebody with access to its account. "
        f"{_NOT_YOURS}; send it again.",
    ),
    _RESULT.GENERIC_STATUS_TIMEOUT: (
        "modal_time_limit",
        "The GPU provider ended the run at its own time limit, which lies beyond that of the job: "
        f"the run did not end itself in time, and left no result. {_NOT_YOURS} if it also ends "
        "late for a small one.",
    ),
    _RESULT.GENERIC_STATUS_INIT_FAILURE: (
        RUN_LOST,
        f"The GPU container could not be started. {_NOT_YOURS}; it is tried again.",
    ),
    _RESULT.GENERIC_STATUS_INTERNAL_FAILURE: (
        RUN_LOST,
        f"The GPU provider lost the run. {_NOT_YOURS}; it is tried again.",
    ),
    _RESULT.GENERIC_STATUS_IDLE_TIMEOUT: (
        RUN_LOST,
        f"The GPU provider lost the run. {_NOT_YOURS}; it is tried again.",
    ),
}
_OUT_OF_MEMORY = (
    "out_of_memory",
    "The run was ended because it used more memory (not GPU memory) than its container has.",
)
_EVICTIONS = (
    _RESULT.GENERIC_STATUS_MEMORY_MANAGER_EVICTION,
    _RESULT.GENERIC_STATUS_MEMORY_THRASHING_EVICTION,
    _RESULT.GENERIC_STATUS_KERNEL_OOM_KILL,
)


def outcome_fault(status: api_pb2.GenericResult.GenericStatus.ValueType) -> RunnerFault:
    """The fault that a result's status tells, where it isn't success. It may be forged."""
    if status in _EVICTIONS:
        kind, words = _OUT_OF_MEMORY
    else:
        kind, words = _OUTCOMES.get(
            status,
            (
                "modal_bad_result",
                f"The GPU provider sent a result of an unknown form. {_OPERATORS}",
            ),
        )
    return RunnerFault(words, kind=kind, retryable=False)


def result_expired() -> RunnerFault:
    return RunnerFault(
        "The result was not collected while the GPU provider kept it (7 days). "
        f"{_NOT_YOURS}; it is run again.",
        kind=RUN_LOST,
        retryable=False,
    )


def run_unknown() -> RunnerFault:
    return RunnerFault(
        f"The GPU provider does not know this run (any more). {_NOT_YOURS}; it is run again.",
        kind=RUN_LOST,
        retryable=False,
    )


def bad_result() -> RunnerFault:
    """What came back isn't a result envelope's form. Details are for the operator's log only."""
    return RunnerFault(
        "What came back from the GPU container is not a result of this service. "
        "No part of it was used.",
        kind="modal_bad_result",
        retryable=False,
    )
