"""What somebody can ask for: API, admin and commands all call these, and say who asks.

Each writes its rows and its audit row in one transaction. Nothing here talks to a GPU: that is
the dispatcher's, which reads the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction

from leaderboards import audit
from leaderboards.acceptance import accept_submission, require_not_paused
from leaderboards.audit import NO_REQUEST, RequestContext
from leaderboards.models import ClientId, Leaderboard, PopcornUser, SubmissionSource, TaskRevision
from leaderboards.preparation import Prepared, prepare, select_benchmarks
from profiling.configs import KIND, fingerprint
from profiling.exceptions import NotCancellable, NotPaused, NotRerunnable
from profiling.models import ProfileRequest
from profiling.reports.text import storable
from profiling.verbs import Verb
from runners import pauses
from runners.exceptions import LostRace, ServiceError
from runners.gpu.contract import Mode
from runners.models import GpuPause
from runners.registry import find_gpu
from runners.states import JobStatus
from runners.transitions import move, queue_job

NAME_CHARS = 200
FILE_NAME_CHARS = 255
REASON_CHARS = 2_000
# Greater numbers are refused, and no integer column takes them for the record.
INTEGER_MAX = 2**31 - 1
_CANCEL_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileOrder:
    """What a client sends. The options have been validated one by one; None is what was left out.

    `via` is the kind of the client's id.
    """

    leaderboard_name: str
    gpu_name: str
    file_name: str
    content: bytes
    benchmark_index: int | None = None
    ncu_kernel_name: str | None = None
    ncu_kernel_name_base: str | None = None
    ncu_launch_count: int | None = None
    via: ClientId.Kind = ClientId.Kind.CLI


class Refusal(NamedTuple):
    """An answer that is no success: HTTP status, stable code, and the words of `detail`."""

    status: int
    code: str
    reason: str


def submit_request(
    order: ProfileOrder,
    *,
    actor: PopcornUser,
    origin: ProfileRequest.Origin,
    context: RequestContext,
    ignore_deadline: bool = False,
) -> ProfileRequest:
    """Prepare a submission and put its profile in the queue.

    Raises the ServiceError of whatever is wrong, after recording the request as a refused one.
    """
    try:
        prepared = prepare(
            user=actor,
            leaderboard_name=order.leaderboard_name,
            gpu_name=order.gpu_name,
            mode=Mode.PROFILE,
            file_name=order.file_name,
            content=order.content,
            benchmark_index=order.benchmark_index,
            via=order.via,
            ignore_deadline=ignore_deadline,
        )
        return _accept(order, prepared, actor=actor, origin=origin, context=context)
    except ServiceError as error:
        record_refusal(error, order=order, actor=actor, origin=origin, context=context)
        raise


def _accept(
    order: ProfileOrder,
    prepared: Prepared,
    *,
    actor: PopcornUser,
    origin: ProfileRequest.Origin,
    context: RequestContext,
) -> ProfileRequest:
    request = _requested(order, prepared, actor=actor, origin=origin)
    request.config_sha256 = fingerprint(request, prepared.text, gpu=prepared.gpu)
    with transaction.atomic(durable=True):
        of = accept_submission(prepared, actor=actor, mode=Mode.PROFILE, context=context)
        request.submission, request.job = of.submission, of.job
        request.source_sha256 = of.submission.source_id
        _save_accepted(request, actor=actor, context=context)
    return request


def record_refusal(
    refusal: ServiceError | Refusal,
    *,
    order: ProfileOrder,
    actor: PopcornUser,
    origin: ProfileRequest.Origin,
    context: RequestContext,
) -> ProfileRequest:
    """Keep a request that was turned away, with the words of its answer.

    `order` holds what of it could be read.
    """
    if isinstance(refusal, ServiceError):
        refusal = Refusal(refusal.http_status, refusal.code, str(refusal))
    gpu = find_gpu(settings.GPU_TYPES, order.gpu_name)
    request = ProfileRequest(
        user=actor,
        origin=origin,
        leaderboard_name=_known_board(order.leaderboard_name),
        gpu=gpu.name if gpu else storable(order.gpu_name, NAME_CHARS),
        file_name=storable(order.file_name, FILE_NAME_CHARS),
        refusal_status=refusal.status,
        refusal_code=refusal.code,
        refusal_reason=storable(refusal.reason, REASON_CHARS),
        **{name: value for name, value in _options(order).items() if _fits(value)},
    )
    with transaction.atomic(durable=True):
        _save(request, context)
        audit.record(
            Verb.REFUSED,
            request,
            actor=actor,
            context=context,
            status=refusal.status,
            code=refusal.code,
            leaderboard=request.leaderboard_name,
            gpu=request.gpu,
        )
    return request


def cancel_request(
    request: ProfileRequest,
    *,
    actor: PopcornUser,
    reason: str,
    context: RequestContext = NO_REQUEST,
) -> None:
    """Cancel and audit in one transaction. A remote run is ended later, by the dispatcher.

    Raises NotCancellable when there is nothing to cancel (any more).
    """
    job = request.job
    if job is None:
        raise NotCancellable("this request was refused and has never run")
    reason = storable(reason, REASON_CHARS)
    for _ in range(_CANCEL_TRIES):
        if job.is_final:
            raise NotCancellable(f"this profile has already ended: {JobStatus(job.status).label}")
        try:
            with transaction.atomic():
                audit.record(
                    Verb.CANCEL_ASKED, request, actor=actor, context=context, reason=reason
                )
                move(job, JobStatus.CANCELLED, actor_label=actor.actor_label, reason=reason)
        except LostRace:
            job.refresh_from_db()  # a dispatcher moved it meanwhile
        else:
            return
    raise NotCancellable("this profile is changing its state just now, try again")


def rerun_request(
    request: ProfileRequest,
    *,
    actor: PopcornUser | None,
    origin: ProfileRequest.Origin,
    context: RequestContext = NO_REQUEST,
    newest_revision: bool = False,
) -> ProfileRequest:
    """Measure the very same again: source, task revision, seed, options and GPU.

    With `newest_revision`, the task as its leaderboard has it now. The new request belongs to whom
    the first one belongs to; `actor` is who asks, None for a command. Nothing new is submitted, so
    no deadline counts. Raises NotRerunnable or GpuPaused, and what `select_benchmarks` raises.
    """
    if request.job is None:
        raise NotRerunnable("this request was refused: there is nothing to measure again")
    if request.deleted_at is not None or _is_withdrawn(request):
        raise NotRerunnable("this request was deleted")
    gpu = find_gpu(settings.GPU_TYPES, request.gpu)
    if gpu is None or not gpu.ncu:
        raise NotRerunnable(f"profiling is no longer offered on {request.gpu}")
    require_not_paused(gpu)
    again = _same_again(request, origin)
    if newest_revision:
        _take_newest_revision(again)
    again.ncu_version_wanted = settings.NCU_VERSIONS.get(gpu.runner, "")
    with transaction.atomic():
        # Locked against a purge that runs just now.
        source = SubmissionSource.objects.select_for_update().get(pk=request.source_sha256)
        if source.purged_at is not None:
            raise NotRerunnable("the source of this request was deleted")
        again.config_sha256 = fingerprint(again, source.text, gpu=gpu)
        again.job = queue_job(
            kind=KIND,
            gpu=gpu.name,
            runner=gpu.runner,
            owner_key=again.user.user_id,
            actor_label=actor.actor_label if actor else audit.SYSTEM_LABEL,
        )
        _save_accepted(again, actor=actor, context=context)
        audit.record(
            Verb.RERUN_ASKED, request, actor=actor, context=context, new_request=str(again.pk)
        )
    return again


def resume_gpu(
    pause: GpuPause, *, actor: PopcornUser, context: RequestContext = NO_REQUEST
) -> None:
    """Start jobs on this GPU type again. Raises NotPaused when somebody already did."""
    with transaction.atomic():
        if not pauses.resume_gpu(pause.gpu, actor_label=actor.actor_label):
            raise NotPaused(f"{pause.gpu} is not paused")
        audit.record(Verb.GPU_RESUMED, pause, actor=actor, context=context, gpu=pause.gpu)


def _is_withdrawn(request: ProfileRequest) -> bool:
    return request.submission is not None and request.submission.deleted_at is not None


def _requested(
    order: ProfileOrder, prepared: Prepared, *, actor: PopcornUser, origin: ProfileRequest.Origin
) -> ProfileRequest:
    """The unsaved row of an order that may run."""
    return ProfileRequest(
        user=actor,
        origin=origin,
        leaderboard_name=prepared.leaderboard.name,
        gpu=prepared.gpu.name,
        file_name=prepared.file_name,
        leaderboard=prepared.leaderboard,
        ncu_version_wanted=settings.NCU_VERSIONS.get(prepared.gpu.runner, ""),
        **_of_task(prepared.revision, prepared.selected),
        **_options(order),
    )


def _of_task(revision: TaskRevision, selected: tuple[int, ...]) -> dict[str, Any]:
    task = revision.definition
    return {
        "revision": revision,
        "benchmark_specs": {str(index): task.benchmarks[index] for index in selected},
        "seed": task.seed,
    }


def _same_again(request: ProfileRequest, origin: ProfileRequest.Origin) -> ProfileRequest:
    """The unsaved row of a re-run."""
    return ProfileRequest(
        origin=origin,
        rerun_of=request,
        **{name: getattr(request, name) for name in _KEPT_BY_A_RERUN},
    )


def _take_newest_revision(again: ProfileRequest) -> None:
    assert again.leaderboard is not None
    newest = again.leaderboard.current_revision
    if newest is None:
        raise NotRerunnable(f"leaderboard {again.leaderboard_name!r} has no task")
    selected = select_benchmarks(newest.definition, Mode.PROFILE, again.benchmark_index)
    for name, value in _of_task(newest, selected).items():
        setattr(again, name, value)


_OPTIONS = ("benchmark_index", "ncu_kernel_name", "ncu_kernel_name_base", "ncu_launch_count")
_KEPT_BY_A_RERUN = (
    "user_id",
    "leaderboard_name",
    "gpu",
    "file_name",
    "source_sha256",
    "leaderboard_id",
    "revision_id",
    "submission_id",
    "benchmark_specs",
    "seed",
    *_OPTIONS,
)


def _options(order: ProfileOrder) -> dict[str, int | str | None]:
    return {name: getattr(order, name) for name in _OPTIONS}


def _fits(value: int | str | None) -> bool:
    return not isinstance(value, int) or 0 <= value <= INTEGER_MAX


def _known_board(name: str) -> str:
    """The leaderboard's own spelling, or what was sent in a form that can be kept."""
    name = storable(name, NAME_CHARS)
    known = Leaderboard.objects.existing().filter(name=name.lower()).exists()
    return name.lower() if known else name


def _save_accepted(
    request: ProfileRequest, *, actor: PopcornUser | None, context: RequestContext
) -> None:
    """The request and its audit row, in the transaction that queued its job."""
    assert request.job is not None
    _save(request, context)
    audit.record(
        Verb.ACCEPTED,
        request,
        actor=actor,
        context=context,
        leaderboard=request.leaderboard_name,
        gpu=request.gpu,
        job=str(request.job.pk),
        submission=request.submission_id,
        source_sha256=request.source_sha256,
        config_sha256=request.config_sha256,
        options=request.capture_options,
        rerun_of=str(request.rerun_of_id) if request.rerun_of_id else None,
    )


def _save(request: ProfileRequest, context: RequestContext) -> None:
    request.request_id = context.request_id
    request.address = context.address
    request.client_version = context.client_version
    request.save(force_insert=True)
