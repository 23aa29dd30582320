"""The three-segment route of older CLIs: to be included after everything else."""

from __future__ import annotations

from django.urls import path, register_converter

from leaderboards.api.converters import NameConverter
from leaderboards.models.tasks import RESERVED_NAMES
from profiling.api.submissions import StreamedSubmissionViewSet


class FreeNameConverter(NameConverter):
    """A name that may be a leaderboard's, so that a wrong /admin/… is told as such."""

    regex = rf"(?!(?i:{'|'.join(sorted(RESERVED_NAMES))})/){NameConverter.regex}"


register_converter(FreeNameConverter, "free_name")

urlpatterns = [
    path(
        "<free_name:leaderboard>/<name:gpu>/<name:mode>",
        StreamedSubmissionViewSet.as_view({"post": "create"}),
    ),
]
