"""What comes in and goes out of the profile API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from rest_framework import serializers

from leaderboards.preparation import find_leaderboard
from profiling.addresses import archive_url, file_urls, request_urls, summary_urls
from profiling.models import Capture, ProfileRequest
from profiling.streaming.news import JobNews
from runners.exceptions import ServiceError

# No task has so many benchmarks; beyond it a number is a mistake, or an attack on a column.
INDEX_MAX = 1_000_000
KERNEL_NAME_CHARS = 1024
KERNEL_NAME_BASES = ("function", "demangled", "mangled")
_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
_REGEX = "regex:"


class CaptureOptionsSerializer(serializers.Serializer[Any]):
    """The four options (wire-contract.md, 6.2). Give it a plain dict: in a form, DRF takes an
    empty value for an absent one, and a capture would silently run without its filter."""

    benchmark_index = serializers.CharField(required=False, allow_blank=True)
    ncu_kernel_name = serializers.CharField(
        required=False,
        max_length=KERNEL_NAME_CHARS,
        trim_whitespace=False,
        error_messages={
            "blank": "an empty name matches no kernel; leave the option out to capture all",
            "max_length": f"at most {KERNEL_NAME_CHARS} characters are accepted",
        },
    )
    ncu_kernel_name_base = serializers.ChoiceField(
        required=False,
        choices=KERNEL_NAME_BASES,
        error_messages={"invalid_choice": f"one of {', '.join(KERNEL_NAME_BASES)} is wanted"},
    )
    ncu_launch_count = serializers.CharField(required=False, allow_blank=True)

    def validate_benchmark_index(self, sent: str) -> int:
        if _WHOLE_NUMBER.fullmatch(sent) and int(sent) <= INDEX_MAX:
            return int(sent)
        raise serializers.ValidationError(f"a whole number {self._index_range()} is wanted")

    def _index_range(self) -> str:
        """Preparation refuses an index that is only too large; here none could be read."""
        try:
            revision = find_leaderboard(self.context["leaderboard"]).current_revision
        except ServiceError:
            revision = None
        if revision is None or not revision.definition.benchmarks:
            return "from 0"
        return f"from 0 to {len(revision.definition.benchmarks) - 1}"

    def validate_ncu_launch_count(self, sent: str) -> int:
        if _WHOLE_NUMBER.fullmatch(sent) and 1 <= int(sent) <= settings.LAUNCH_COUNT_MAX:
            return int(sent)
        raise serializers.ValidationError(
            f"a whole number from 1 to {settings.LAUNCH_COUNT_MAX} is wanted"
        )

    def validate_ncu_kernel_name(self, sent: str) -> str:
        """A filter that ncu could not use is refused before a GPU is asked (FR-04)."""
        if sent.startswith("-"):
            raise serializers.ValidationError("a kernel name does not begin with '-'")
        if sent.startswith(_REGEX):
            _require_regex(sent.removeprefix(_REGEX))
        return sent


def _require_regex(pattern: str) -> None:
    if not pattern:
        raise serializers.ValidationError("the regular expression after 'regex:' is missing")
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise serializers.ValidationError(f"this is no regular expression: {error}") from error


class CaptureSerializer(serializers.ModelSerializer[Capture]):
    """A capture with all that its report says, and where its files are."""

    archive = serializers.SerializerMethodField()
    files = serializers.SerializerMethodField()
    summary = serializers.SerializerMethodField()

    class Meta:
        model = Capture
        fields = (
            "benchmark_index",
            "spec",
            "status",
            "failure_kind",
            "failure_fault",
            "failure_message",
            "verdict",
            "verdict_reasons",
            "notes",
            "passed",
            "started_at",
            "finished_at",
            "ncu_version",
            "cuda_version",
            "driver_version",
            "gpu_name",
            "launch_count",
            "replay_passes",
            "kernels",
            "unavailable_counters",
            "session",
            "archive",
            "files",
            "summary",
        )

    def get_archive(self, capture: Capture) -> dict[str, Any] | None:
        stored = capture.artifact
        if stored is None:
            return None
        return {"size": stored.size, "sha256": stored.sha256, "url": archive_url(capture)}

    def get_files(self, capture: Capture) -> dict[str, str]:
        return file_urls(capture) if capture.artifact is not None else {}

    def get_summary(self, capture: Capture) -> dict[str, str]:
        return summary_urls(capture)


class RequestSummarySerializer(serializers.ModelSerializer[ProfileRequest]):
    """An accepted request in a list. The context has `news`: job id to JobNews."""

    phase = serializers.SerializerMethodField()
    queue_position = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField()
    failure_kind = serializers.CharField(source="job.failure_kind")
    finished_at = serializers.DateTimeField(source="job.finished_at")
    urls = serializers.SerializerMethodField()

    class Meta:
        model = ProfileRequest
        fields: tuple[str, ...] = (
            "id",
            "status",
            "phase",
            "queue_position",
            "message",
            "verdict",
            "failure_kind",
            "result_origin",
            "created_at",
            "finished_at",
            "leaderboard_name",
            "gpu",
            "file_name",
            "source_sha256",
            "capture_options",
            "rerun_of",
            "urls",
        )

    def _news(self, request: ProfileRequest) -> JobNews:
        news: Mapping[Any, JobNews] = self.context["news"]
        return news[request.job_id]

    def get_phase(self, request: ProfileRequest) -> str:
        return self._news(request).phase

    def get_queue_position(self, request: ProfileRequest) -> int | None:
        return self._news(request).queue_position

    def get_message(self, request: ProfileRequest) -> str:
        return self._news(request).message

    def get_urls(self, request: ProfileRequest) -> dict[str, str]:
        return request_urls(request)


class RequestSerializer(RequestSummarySerializer):
    """One accepted request with its captures. The context has `error` as well: why it failed."""

    task = serializers.SerializerMethodField()
    error = serializers.SerializerMethodField()
    captures = CaptureSerializer(many=True)

    class Meta(RequestSummarySerializer.Meta):
        fields = (
            *RequestSummarySerializer.Meta.fields,
            "benchmark_specs",
            "config_sha256",
            "seed",
            "ncu_version_wanted",
            "system",
            "task",
            "error",
            "captures",
        )

    def get_task(self, request: ProfileRequest) -> dict[str, str]:
        revision = request.revision
        assert revision is not None
        return {
            "sha256": revision.sha256,
            "repository": revision.repository,
            "commit": revision.commit,
        }

    def get_error(self, request: ProfileRequest) -> dict[str, Any] | None:
        error: dict[str, Any] | None = self.context["error"]
        return error
