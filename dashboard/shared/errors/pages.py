"""Turns errors into pages: one table (``statuses``), one template, a stable code on each.

To the API each is a problem of ``dashboard.shared.errors.problems`` instead.
"""

import logging
import math
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse
from django.utils.deprecation import MiddlewareMixin

from dashboard.site.mount_point import is_api_request
from machines.engine import errors
from machines.instances.bulks.store import OrderLost
from machines.people import errors as services
from machines.people.permissions import Forbidden, scope_of

from . import problems
from .statuses import BAD_REQUEST, FAULT, FORBIDDEN, NO_PAGE, STALE_FORM, status_of, title_of

log = logging.getLogger(__name__)


class EngineErrorMiddleware(MiddlewareMixin):
    """Turns engine errors that no view caught into pages (or JSON for the API).

    It sits innermost. What fails because Redis is away is left to the outage page (``redis_outage``).
    """

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, OrderLost) and not is_api_request(request):
            return not_found(request, Http404(f"{error}."))
        if not isinstance(error, errors.SignalboxError) or isinstance(error, Forbidden):
            return None  # Django logs what is forbidden, and asks ``forbidden`` for the answer
        if isinstance(error, errors.EngineUnavailable) and not (is_api_request(request) and request.method == "POST"):
            return None
        if is_api_request(request):
            return problems.answer_error(request, error)
        status = status_of(type(error))
        if status >= 500:
            log.error("%s %s: %s %s", request.method, request.path, error.code, error)
        if isinstance(error, services.TooFast):
            return too_fast(request, error)
        return _render_engine_error(request, error, status)


def _render_engine_error(request: HttpRequest, error: errors.SignalboxError, status: int) -> HttpResponse:
    context = {"title": title_of(type(error)), "message": error.message, "code": error.code}
    machine = getattr(error, "machine", "")
    if isinstance(error, errors.UnknownInstance):
        context["back"] = {"url": reverse("signalbox:machine", args=[machine]), "text": f"Instances of {machine}"}
    if isinstance(error, services.SignInNeeded):
        context["back"] = _link_confirmation(request)
    if isinstance(error, errors.UnknownMachine) and (seen := _list_visible_machines(request, error)):
        context["hint"] = f"Available: {errors.shorten_names(seen)}."
    response = render_error(request, status, **context)
    if seconds := getattr(error, "retry_after", 0):
        response["Retry-After"] = str(math.ceil(seconds))
    return response


def _link_confirmation(request: HttpRequest) -> dict[str, str] | None:
    """Return the link to prove again who one is, which leads back to the page of the form; None without such a page."""
    try:
        url = reverse("account_confirm")
    except NoReverseMatch:
        return None
    page = urlsplit(request.headers.get("Referer", ""))
    back = page._replace(scheme="", netloc="").geturl() if page.netloc == request.get_host() else ""
    return {"url": f"{url}?{urlencode({'next': back or '/'})}", "text": "Confirm it is you"}


def _list_visible_machines(request: HttpRequest, error: errors.UnknownMachine) -> list[str]:
    """List the known machines that the person may see."""
    scope = scope_of(request.user)
    return [name for name in error.known if name in scope]


def too_fast(request: HttpRequest, error: services.TooFast) -> HttpResponse:
    """Answer 429 with the form, to send it again."""
    seconds = max(1, math.ceil(error.retry_after))
    response = render_error(
        request, 429, title=title_of(type(error)), message=f"{error.message}.", code=error.code,
        hint=f"Try again in {seconds} second{'' if seconds == 1 else 's'}."
        " To change many instances, use a bulk action or the API.",
        resend=list_resend_fields(request),
    )  # fmt: skip
    response["Retry-After"] = str(seconds)
    return response


def list_resend_fields(request: HttpRequest) -> list[tuple[str, str]] | None:
    """Return the posted fields, to post them again; None unless a key or a revision makes two count once."""
    if request.method != "POST" or not any(request.POST.get(name) for name in ("key", "revision")):
        return None
    return [(name, text) for name, texts in request.POST.lists() for text in texts if name != "csrfmiddlewaretoken"]


def render_error(request: HttpRequest, status: int, **context: Any) -> HttpResponse:
    """Render the page. ``title``, ``message``, ``code``; optional ``hint``, ``back`` (url, text), ``resend``.

    The API gets a problem with the code.
    """
    if is_api_request(request):
        return problems.answer_problem(request, context["code"], status=status)
    response = render(request, "signalbox/error.html", {"status": status} | context, status=status)
    response["Cache-Control"] = "no-store"
    return response


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return render_error(
        request, 400, title="Bad request", code=BAD_REQUEST,
        message="The request is malformed or too large.",
    )  # fmt: skip


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if is_api_request(request):
        if isinstance(exception, Forbidden):
            return problems.answer_error(request, exception)
        return problems.answer_problem(request, FORBIDDEN, str(exception or ""))
    message = "Your account does not have the required permission."
    right, code = "", FORBIDDEN
    if isinstance(exception, Forbidden):
        right, code = exception.right, exception.code
        message = f"{exception.message[:1].upper()}{exception.message[1:]}."
    return render_error(
        request, 403, title="Permission denied", code=code, message=message, right=right,
        hint="An administrator can grant it." if right else "",
    )  # fmt: skip


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    # Django's own resolver puts a dict into its Http404.
    own = isinstance(exception, Http404) and exception.args and isinstance(exception.args[0], str)
    given = str(exception) if own else ""
    message = given or "This page does not exist. It may have been deleted, or the link is incomplete."
    return render_error(request, 404, title="Page not found", code=NO_PAGE, message=message)


def fault(request: HttpRequest) -> HttpResponse:
    """Answer 500, rendered without request, session or engine, since any of them may be what failed."""
    if is_api_request(request):
        return problems.answer_problem(request, FAULT)
    context = {
        "status": 500, "code": FAULT, "title": "Internal server error",
        "message": "Signalbox failed to handle this request. The cause is in the server log.",
        "hint": "Each step is atomic: it happened completely or not at all. Check the instance before you try again.",
    }  # fmt: skip
    return HttpResponse(render_to_string("signalbox/error.html", context), status=500)


def stale_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a failed CSRF check: cookies are off, the login changed, or the page was open for days."""
    return render_error(
        request, 403, title="Form expired", code=STALE_FORM,
        message="The form was not submitted. Go back, reload the page and submit it again.",
        hint="If this happens again, check that cookies are enabled.",
    )  # fmt: skip
