"""Why a submission is refused, and what else can go wrong with people and tasks.

`code` is stable and for programs, `http_status` is what the API answers (wire-contract.md, 13 and
20); the message is for the person who sent the submission.
"""

from __future__ import annotations

from runners.exceptions import ServiceError


class SubmissionRefused(ServiceError):
    """Base of every reason for which `preparation.prepare` refuses a submission."""

    code = "submission_refused"


class Banned(SubmissionRefused):
    code = "banned"
    http_status = 403


class UnknownLeaderboard(SubmissionRefused):
    code = "unknown_leaderboard"
    http_status = 404


class LeaderboardClosed(SubmissionRefused):
    code = "closed_leaderboard"
    http_status = 403


class DeadlinePassed(SubmissionRefused):
    code = "deadline_passed"


class NoTask(SubmissionRefused):
    """The leaderboard exists, but no task was ever synced for it: ours to mend."""

    code = "no_task"
    http_status = 409


class GpuNotOffered(SubmissionRefused):
    code = "gpu_not_offered"


class GpuNotProfilable(SubmissionRefused):
    code = "gpu_not_profilable"


class EmptyFile(SubmissionRefused):
    code = "empty_file"


class FileTooLarge(SubmissionRefused):
    code = "file_too_large"
    http_status = 413


class NotText(SubmissionRefused):
    code = "not_utf8"


class NulBytes(SubmissionRefused):
    code = "nul_bytes"


class BadFileName(SubmissionRefused):
    code = "bad_file_name"


class WrongExtension(SubmissionRefused):
    code = "wrong_extension"


class BadDirective(SubmissionRefused):
    code = "bad_directive"


class DirectiveConflict(SubmissionRefused):
    """The file says that it is for another leaderboard than it was sent to."""

    code = "directive_conflict"


class MultiGpuTask(SubmissionRefused):
    code = "multi_gpu_task"


class NoBenchmarks(SubmissionRefused):
    code = "no_benchmarks"


class BenchmarkIndexOutOfRange(SubmissionRefused):
    code = "benchmark_index_out_of_range"


class UnknownMode(SubmissionRefused):
    code = "unknown_mode"


class NotAccepting(SubmissionRefused):
    """An operator has stopped the taking of submissions for a while."""

    code = "not_accepting"
    http_status = 503


class GpuPaused(SubmissionRefused):
    """The machines of this GPU type cannot do their work now (FR-09): ours to mend."""

    code = "gpu_paused"
    http_status = 503


class HourlyLimitReached(SubmissionRefused):
    code = "hourly_limit"
    http_status = 429


class UnknownGpu(ServiceError):
    code = "unknown_gpu"
    http_status = 404


class BadLeaderboard(ServiceError):
    code = "bad_leaderboard"


class BadUserName(ServiceError):
    code = "bad_user_name"


class LeaderboardInUse(ServiceError):
    """There are submissions to it, and nobody said that they may go."""

    code = "leaderboard_in_use"


class BadInvite(ServiceError):
    code = "bad_invite"


class UnknownInvite(ServiceError):
    code = "unknown_invite"
    http_status = 404


class UnknownRateLimit(ServiceError):
    code = "unknown_rate_limit"
    http_status = 404
