"""A person's own submissions: polling, list and deletion (wire-contract.md, 5.2 and 7)."""

from __future__ import annotations

from rest_framework import viewsets
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboards.api.authentication import ClientIdAuthentication, person
from leaderboards.api.context import request_context
from leaderboards.api.ids import read_id
from leaderboards.api.paging import read_page
from leaderboards.api.patience import PatientReads
from leaderboards.api.wire_shapes import show_listed, show_submission
from leaderboards.deletion import delete_submission
from leaderboards.submission_reads import list_submissions, read_submission, standing_submissions

LIST_DEFAULT, LIST_MAX = 50, 100


class UserSubmissionViewSet(PatientReads, viewsets.ViewSet):
    """Never rate limited: the CLI polls here, and a refused poll ends its command."""

    authentication_classes = [ClientIdAuthentication]
    metadata_class = None

    def list(self, request: Request) -> Response:
        page = read_page(request, default=LIST_DEFAULT, maximum=LIST_MAX)
        found = list_submissions(
            standing_submissions(person(request)),
            leaderboard=request.query_params.get("leaderboard"),
            limit=page.limit,
            offset=page.offset,
        )
        return Response([show_listed(row) for row in found])

    def retrieve(self, request: Request, pk: str) -> Response:
        found = read_submission(standing_submissions(person(request)), read_id(pk))
        if found is None:
            raise NotFound
        return Response(show_submission(found))

    def destroy(self, request: Request, pk: str) -> Response:
        found = standing_submissions(person(request)).filter(pk=read_id(pk)).first()
        if found is None:
            raise NotFound
        delete_submission(found, actor=person(request), context=request_context(request._request))
        return Response({"status": "ok", "submission_id": found.pk})
