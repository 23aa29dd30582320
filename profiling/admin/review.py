"""One request on one screen for operators, with what they decide about it."""

from __future__ import annotations

import re
from collections.abc import Callable
from uuid import UUID

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from leaderboards.api.context import request_context
from leaderboards.audit import RequestContext
from leaderboards.models import PopcornUser
from profiling.actions import rerun_request
from profiling.links import BadLink, find_link
from profiling.models import ProfileRequest
from profiling.pages.compare import send_comparison
from profiling.pages.page import SHOWN_WITH, send_request_page
from profiling.pages.places import OperatorPlace
from profiling.reviews import review_request
from runners.exceptions import ServiceError

BASE = "profiling/review/operator_base.html"
_UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
Deed = Callable[[ProfileRequest, str, PopcornUser, RequestContext], str]


def review_page(http: HttpRequest, request: ProfileRequest, *, may_act: bool) -> HttpResponse:
    """GET shows, POST does the deed that its button names. The caller has checked `view`."""
    if http.method == "POST" and may_act:
        _do(http, request)
        return redirect(http.get_full_path())
    facts = {
        **admin.site.each_context(http),
        "opts": ProfileRequest._meta,
        "here": "Review",
        "may_review": may_act,
    }
    return send_request_page(http, request, OperatorPlace(request), base=BASE, facts=facts)


def comparison_page(http: HttpRequest, request: ProfileRequest, other: UUID) -> HttpResponse:
    facts = {
        **admin.site.each_context(http),
        "opts": ProfileRequest._meta,
        "here": "Comparison",
    }
    shown = ProfileRequest.objects.select_related(*SHOWN_WITH)
    return send_comparison(
        http,
        request,
        get_object_or_404(shown.defer("revision__definition_json", "system"), pk=other),
        OperatorPlace(request),
        template=BASE,
        facts=facts,
    )


def named_request(text: str) -> UUID | None:
    """From an id, or the address of a page of either kind."""
    if found := re.search(_UUID, text):
        return UUID(found[0])
    try:
        return find_link(text).request_id
    except BadLink:
        return None


def _do(http: HttpRequest, request: ProfileRequest) -> None:
    deed = _DEEDS.get(http.POST.get("deed", ""))
    if deed is None:
        messages.error(http, "Nothing was asked for.")
        return
    assert isinstance(http.user, PopcornUser)
    try:
        note = http.POST.get("note", "")
        messages.success(http, deed(request, note, http.user, request_context(http)))
    except ServiceError as error:
        messages.error(http, str(error))


def _decide(decision: ProfileRequest.Decision) -> Deed:
    def decide(
        request: ProfileRequest, note: str, actor: PopcornUser, context: RequestContext
    ) -> str:
        review_request(request, decision=decision, note=note, actor=actor, context=context)
        return f"The request is marked {decision.value}."

    return decide


def _rerun(request: ProfileRequest, note: str, actor: PopcornUser, context: RequestContext) -> str:
    origin = ProfileRequest.Origin.ADMIN
    again = rerun_request(request, actor=actor, origin=origin, context=context)
    return f"It is measured again as {again.pk}."


_DEEDS: dict[str, Deed] = {
    "reviewed": _decide(ProfileRequest.Decision.REVIEWED),
    "rejected": _decide(ProfileRequest.Decision.REJECTED),
    "rerun": _rerun,
}
