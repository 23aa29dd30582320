"""Every request for a profile, refused ones too, and what each capture measured."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q, Value
from django.utils import timezone

from leaderboards.models import Leaderboard, PopcornUser, Submission, TaskRevision
from runners.models import AppendOnly, Artifact, Job, uuid7
from runners.states import JobStatus

# Told to the database too: a dispatcher of the last release does not know these columns.
_NOTHING_SAID = Value({}, models.JSONField())
_NO_REASONS = Value([], models.JSONField())


class ProfileRequestQuerySet(models.QuerySet["ProfileRequest"]):
    def visible_to(self, user: PopcornUser) -> ProfileRequestQuerySet:
        """A person sees their own accepted requests, while these are not deleted."""
        return self.filter(
            user=user,
            job__isnull=False,
            deleted_at__isnull=True,
            submission__deleted_at__isnull=True,
        )


class ProfileRequest(models.Model):
    """Who asked for what, with all that the answer must later be compared with.

    An accepted request has a job, a refused one a reason. Rows are never deleted: `deleted_at`
    hides them from their owner.
    """

    class Origin(models.TextChoices):
        CLI = "cli"
        API = "api"
        BREV = "brev"
        ADMIN = "admin"
        COMMAND = "command"

    class Verdict(models.TextChoices):
        COMPLETE = "complete"
        PARTIAL = "partial"
        DEGRADED = "degraded"
        FAILED = "failed"

    class Decision(models.TextChoices):
        """What an operator made of it: `Review`."""

        REVIEWED = "reviewed"
        REJECTED = "rejected"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    created_at = models.DateTimeField(default=timezone.now)
    user = models.ForeignKey(PopcornUser, on_delete=models.PROTECT, related_name="profile_requests")
    origin = models.CharField(max_length=8, choices=Origin)
    request_id = models.CharField(max_length=64, blank=True)
    address = models.GenericIPAddressField(null=True, blank=True)
    client_version = models.CharField(max_length=200, blank=True)
    rerun_of = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="reruns"
    )

    # What was asked, as it was sent.
    leaderboard_name = models.CharField(max_length=200)
    gpu = models.CharField(max_length=200)
    file_name = models.CharField(max_length=255, blank=True)
    source_sha256 = models.CharField(max_length=64, blank=True)
    benchmark_index = models.PositiveIntegerField(null=True, blank=True)
    ncu_kernel_name = models.CharField(max_length=1024, null=True, blank=True)  # noqa: DJ001
    ncu_kernel_name_base = models.CharField(max_length=16, null=True, blank=True)  # noqa: DJ001
    ncu_launch_count = models.PositiveIntegerField(null=True, blank=True)

    # Refused: why, in the words of the answer.
    refusal_status = models.PositiveSmallIntegerField(null=True, blank=True)
    refusal_code = models.CharField(max_length=64, blank=True)
    refusal_reason = models.TextField(blank=True)

    # Accepted: what it became.
    leaderboard = models.ForeignKey(
        Leaderboard, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    revision = models.ForeignKey(
        TaskRevision, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    submission = models.ForeignKey(
        Submission, null=True, blank=True, on_delete=models.PROTECT, related_name="profile_requests"
    )
    job = models.OneToOneField(
        Job, null=True, blank=True, on_delete=models.PROTECT, related_name="profile_request"
    )
    # {"2": {"size": 1024, "seed": 7}}: the chosen benchmarks by their index in the task.
    benchmark_specs = models.JSONField(default=dict)
    config_sha256 = models.CharField(max_length=64, blank=True)
    seed = models.BigIntegerField(null=True, blank=True)
    ncu_version_wanted = models.CharField(max_length=32, blank=True)

    # What came back for the request as a whole: wire-contract.md, `system`.
    system = models.JSONField(default=dict)
    # "synthetic" or "recorded" when no GPU measured anything; shown wherever the captures are.
    result_origin = models.CharField(max_length=100, blank=True)
    verdict = models.CharField(max_length=16, choices=Verdict, blank=True)
    # Of the newest review, for lists; "" was never reviewed.
    review_decision = models.CharField(
        max_length=16, choices=Decision, blank=True, default="", db_default=""
    )
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects = ProfileRequestQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="profile_request_job_or_refusal",
                condition=Q(job__isnull=True, refusal_status__isnull=False)
                & ~Q(refusal_reason="")
                & ~Q(refusal_code="")
                | Q(
                    job__isnull=False,
                    submission__isnull=False,
                    revision__isnull=False,
                    leaderboard__isnull=False,
                    refusal_status__isnull=True,
                    refusal_reason="",
                    refusal_code="",
                )
                & ~Q(config_sha256="")
                & ~Q(source_sha256=""),
            ),
            models.CheckConstraint(
                name="profile_request_origin_known",
                condition=Q(origin__in=["cli", "api", "brev", "admin", "command"]),
            ),
            models.CheckConstraint(
                name="profile_request_verdict_known",
                condition=Q(verdict__in=["", "complete", "partial", "degraded", "failed"]),
            ),
            models.CheckConstraint(
                name="profile_request_decision_known",
                condition=Q(review_decision__in=["", "reviewed", "rejected"]),
            ),
        ]
        indexes = [
            models.Index(fields=["-created_at"], name="profile_request_newest"),
            models.Index(fields=["user", "-created_at"], name="profile_request_of_user"),
            models.Index(fields=["verdict", "-created_at"], name="profile_request_of_verdict"),
            models.Index(
                fields=["review_decision", "-created_at"], name="profile_request_of_decision"
            ),
            # Filters of the lists whose values may be rare among many rows (FR-36).
            models.Index(fields=["gpu", "-created_at"], name="profile_request_of_gpu"),
            models.Index(fields=["origin", "-created_at"], name="profile_request_of_origin"),
            models.Index(
                fields=["-created_at"],
                name="profile_request_unmeasured",
                condition=~Q(result_origin=""),
            ),
        ]

    def __str__(self) -> str:
        return f"profile {self.pk}"

    @property
    def capture_options(self) -> dict[str, Any]:
        """The given options only, in the wire's words."""
        names = ("benchmark_index", "ncu_kernel_name", "ncu_kernel_name_base", "ncu_launch_count")
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def status(self) -> str:
        """`refused`, or the status of the job."""
        return JobStatus(self.job.status).value if self.job else "refused"


class Capture(models.Model):
    """One benchmark's run under the profiler: what happened, and what the report itself says."""

    class Status(models.TextChoices):
        CAPTURED = "captured"
        FAILED = "failed"

    class Verdict(models.TextChoices):
        """What the report is worth, the worst last; `profiling/reports/verdict.py` decides."""

        COMPLETE = "complete"
        PARTIAL = "partial"
        DEGRADED = "degraded"
        EMPTY = "empty"
        UNREADABLE = "unreadable"
        MISSING = "missing"

    request = models.ForeignKey(ProfileRequest, on_delete=models.PROTECT, related_name="captures")
    benchmark_index = models.PositiveIntegerField()
    # The case line that the evaluator was given, for example "size: 1024; seed: 7".
    spec = models.TextField()
    status = models.CharField(max_length=16, choices=Status)
    failure_kind = models.CharField(max_length=64, blank=True)
    failure_fault = models.CharField(max_length=16, blank=True)
    failure_message = models.TextField(blank=True)
    # [{"kind": ..., "message": ...}]: what a good capture still has to say.
    notes = models.JSONField(default=list)
    artifact = models.ForeignKey(
        Artifact, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField()
    # Whether the evaluator's check passed; None when it gave no verdict.
    passed = models.BooleanField(null=True, blank=True)
    # RunResult and CompileResult as the GPU side sent them (wire-contract.md, 6.4).
    run = models.JSONField(null=True, blank=True)
    compilation = models.JSONField(null=True, blank=True)
    # A short readable part of the details.
    extract = models.TextField(blank=True)

    # Read from inside the report, never believed from elsewhere; empty where it does not say.
    ncu_version = models.CharField(max_length=100, blank=True)
    cuda_version = models.CharField(max_length=100, blank=True)
    driver_version = models.CharField(max_length=100, blank=True)
    gpu_name = models.CharField(max_length=200, blank=True)
    launch_count = models.PositiveIntegerField(null=True, blank=True)
    replay_passes = models.PositiveIntegerField(null=True, blank=True)
    # Per launch: names, grid, block, key metrics (profiling/reports/reader.py).
    kernels = models.JSONField(default=list)
    unavailable_counters = models.JSONField(default=list)
    # The machine without its name, and the profiler's settings: profiling/reports/session.py.
    session = models.JSONField(default=dict, db_default=_NOTHING_SAID)

    # What the report is worth, and why: [{"code": ..., "message": ...}]. "" was never judged.
    verdict = models.CharField(
        max_length=16, choices=Verdict, blank=True, default="", db_default=""
    )
    verdict_reasons = models.JSONField(default=list, db_default=_NO_REASONS)

    class Meta:
        ordering = ["benchmark_index"]
        constraints = [
            models.UniqueConstraint(
                name="capture_once_per_benchmark", fields=["request", "benchmark_index"]
            ),
            models.CheckConstraint(
                name="capture_status_known", condition=Q(status__in=["captured", "failed"])
            ),
            models.CheckConstraint(
                name="capture_verdict_known",
                condition=Q(
                    verdict__in=[
                        "",
                        "complete",
                        "partial",
                        "degraded",
                        "empty",
                        "unreadable",
                        "missing",
                    ]
                ),
            ),
            models.CheckConstraint(
                name="capture_failed_says_why",
                condition=Q(status="captured", failure_kind="", artifact__isnull=False)
                | (Q(status="failed") & ~Q(failure_kind="")),
            ),
        ]
        indexes = [
            models.Index(fields=["failure_kind"], name="capture_failure"),
            models.Index(fields=["verdict", "-id"], name="capture_verdict"),
            models.Index(fields=["status", "-id"], name="capture_status"),
            models.Index(fields=["passed", "-id"], name="capture_passed"),
        ]

    def __str__(self) -> str:
        return f"capture of benchmark {self.benchmark_index}"

    @property
    def key(self) -> str:
        """Its key in `runs` on the wire."""
        return f"profile.{self.benchmark_index}"


class CaptureDetails(models.Model):
    """All metrics, findings and hot spots of a capture, apart, so that lists stay cheap.

    `content` is what `profiling.reports.details.pack` made; docs/evidence.md tells the schema.
    """

    capture = models.OneToOneField(
        Capture, primary_key=True, on_delete=models.PROTECT, related_name="details"
    )
    schema = models.PositiveSmallIntegerField()
    # The versions of NVIDIA's library and of our reader that read it.
    reader = models.CharField(max_length=100)
    read_at = models.DateTimeField(default=timezone.now)
    unpacked_bytes = models.PositiveIntegerField()
    content = models.BinaryField()

    class Meta:
        verbose_name_plural = "capture details"

    def __str__(self) -> str:
        return f"details of capture {self.capture_id}"


class Review(AppendOnly):
    """An operator's word on a request; the newest one counts. The owner reads it too."""

    request = models.ForeignKey(ProfileRequest, on_delete=models.PROTECT, related_name="reviews")
    reviewer = models.ForeignKey(PopcornUser, on_delete=models.PROTECT, related_name="+")
    decision = models.CharField(max_length=16, choices=ProfileRequest.Decision)
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                name="review_rejected_says_why",
                condition=Q(decision="reviewed") | Q(decision="rejected") & ~Q(note=""),
            )
        ]

    def __str__(self) -> str:
        return f"{self.decision} {self.request_id}"
