"""The page of a request for whoever holds its link, and the files of its captures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from leaderboards.api.context import request_context
from profiling.addresses import ARCHIVE_FILES
from profiling.downloads import send_archive, send_file
from profiling.links import BadLink, Link, find_link, read_link
from profiling.models import Capture, ProfileRequest
from profiling.pages.compare import send_comparison
from profiling.pages.page import SHOWN_WITH, send_request_page
from profiling.pages.places import OwnerPlace
from profiling.trail import recorded
from runners.exceptions import ServiceError

BASE = "profiling/review/owner_base.html"
View = Callable[..., HttpResponseBase]


class NotThere(ServiceError):
    """The link is wrong, old, or leads to what was deleted; a stranger learns no more."""

    code = "not_found"
    http_status = 404


def for_link_holders(view: View) -> View:
    """Gives the view the request that its token opens; tells errors as a page."""

    @require_safe
    @wraps(view)
    def wrapped(http: HttpRequest, token: str, **args: object) -> HttpResponseBase:
        try:
            link = read_link(token)
            return view(http, link, find_shown(link), **args)
        except (BadLink, ServiceError) as error:
            status = error.http_status if isinstance(error, ServiceError) else 404
            facts = {"title": "That did not work", "said": str(error)}
            return render(http, "profiling/review/problem.html", facts, status=status)

    return wrapped


def find_shown(link: Link) -> ProfileRequest:
    """Raises NotThere for what its owner would not see either."""
    found = (
        ProfileRequest.objects.select_related(*SHOWN_WITH)
        .defer("revision__definition_json", "system")
        .filter(
            pk=link.request_id,
            job__isnull=False,
            deleted_at__isnull=True,
            submission__deleted_at__isnull=True,
        )
        .first()
    )
    if found is None:
        raise NotThere("this profile was deleted")
    return found


@for_link_holders
def show(http: HttpRequest, link: Link, request: ProfileRequest) -> HttpResponseBase:
    facts = {"link_ends_at": link.ends_at}
    return send_request_page(http, request, OwnerPlace(link), base=BASE, facts=facts)


@for_link_holders
def compare(http: HttpRequest, link: Link, request: ProfileRequest) -> HttpResponseBase:
    """With the request that a second link opens: neither opens more than it does alone."""
    other_link = find_link(http.GET.get("with", ""))
    return send_comparison(
        http,
        request,
        find_shown(other_link),
        OwnerPlace(
            link if link.until < other_link.until else replace(link, until=other_link.until)
        ),
        template=BASE,
        facts={},
    )


@for_link_holders
def archive(http: HttpRequest, link: Link, request: ProfileRequest, index: int) -> HttpResponseBase:
    capture = _stored_capture(request, index)
    assert capture.artifact is not None
    sent = send_archive(http, request, capture, capture.artifact)
    return _recorded(http, sent, request, capture, "archive")


@for_link_holders
def file(
    http: HttpRequest, link: Link, request: ProfileRequest, index: int, name: str
) -> HttpResponseBase:
    capture = _stored_capture(request, index)
    if name not in ARCHIVE_FILES:
        raise NotThere("there is no such file")
    assert capture.artifact is not None
    sent = send_file(http, request, capture, capture.artifact, name)
    return _recorded(http, sent, request, capture, name)


def _recorded(
    http: HttpRequest, sent: HttpResponseBase, request: ProfileRequest, capture: Capture, name: str
) -> HttpResponseBase:
    return recorded(sent, request, capture, name, actor=None, context=request_context(http))


def _stored_capture(request: ProfileRequest, index: int) -> Capture:
    for capture in request.captures.select_related("artifact"):
        if capture.benchmark_index == index and capture.artifact is not None:
            return capture
    raise NotThere("this benchmark has no files")
