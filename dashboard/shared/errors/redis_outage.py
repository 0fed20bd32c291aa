"""Answers 503 while Redis is not reachable, or an SQLite database is locked, with a code and Retry-After. The rest of
the site keeps working."""

import logging
import sys
from collections.abc import Callable
from typing import TypeVar

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.middleware.csrf import get_token
from django.template import TemplateDoesNotExist
from django.template.loader import render_to_string
from django.utils.deprecation import MiddlewareMixin
from django_redis.exceptions import ConnectionInterrupted
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisClusterException
from redis.exceptions import TimeoutError as RedisTimeoutError

from dashboard.shared import themes
from dashboard.site.mount_point import is_api_request
from machines.audit.request_context import request_id
from machines.conf.database import is_locked
from machines.connections import is_spread
from machines.engine import retry_for
from machines.engine.connection.cluster_routing import NODE
from machines.engine.connection.server_permissions import find_denial
from machines.engine.errors import EngineUnavailable

from . import problems
from .pages import fault, list_resend_fields
from .statuses import BUSY, title_of

log = logging.getLogger(__name__)
CODE = EngineUnavailable.code
RETRY_AFTER = 5  # seconds
CAUSES = (EngineUnavailable, ConnectionInterrupted, RedisConnectionError, RedisTimeoutError, RedisClusterException)
UNCHANGED = "The page could not be read. Nothing was changed."
REPEATABLE = "It is unknown whether this request was applied. Sending it again is safe: it is applied once at most."
UNKNOWN = "It is unknown whether this request was applied. Check before you send it again."
PLAIN = "<!doctype html><title>Signalbox</title><h1>{title}</h1><p>{message}</p><p>Code {code}</p>"


class RedisOutageMiddleware(MiddlewareMixin):
    """Turns a failure of engine, cache or session into the 503 page. It sits innermost, next to the views."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if is_locked(error):
            return answer_locked(request, error, resend=list_resend_fields(request))
        return answer(request, error, resend=list_resend_fields(request)) if is_outage(error) else None


def is_outage(error: BaseException | None) -> bool:
    """Return whether the error, or its cause, says that Redis did not respond or refused the account."""
    if find_denial(error) is not None:
        return True
    while error is not None:
        if isinstance(error, CAUSES):
            return True
        error = error.__cause__
    return False


def find_node(error: BaseException | None) -> str:
    """Return the node of a cluster that did not answer, ``host:port``; empty where the error does not name it."""
    while error is not None:
        if node := getattr(error, "node", "") or getattr(error, NODE, ""):
            return str(node)
        error = error.__cause__
    return ""


def answer(request: HttpRequest, error: BaseException, resend: list[tuple[str, str]] | None = None) -> HttpResponse:
    """Answer 503 in the form the client accepts. ``resend``: fields of a form that the page offers to send again."""
    denied = find_denial(error)
    log.warning("%s %s: Redis did not answer: %s", request.method, request.path, denied or error)
    if denied is not None and is_api_request(request):
        return problems.answer_error(request, denied)
    effect = _describe_effect(request, resend)
    facts = {
        "code": getattr(error, "code", CODE),
        "title": "Redis unavailable",
        "message": f"Redis does not answer. {effect}",
    }
    if node := _find_shown_node(request, error):
        facts |= {"message": f"The node {node} of the Redis Cluster does not answer. {effect}", "node": node}
    if denied is not None:
        facts |= {"code": denied.code, "title": title_of(type(denied)), "message": f"{denied.message}. {effect}"}
    if is_api_request(request):
        return problems.answer_unavailable(request, facts["code"], node=node)
    return _write(request, facts, resend)


def answer_locked(
    request: HttpRequest, error: BaseException, resend: list[tuple[str, str]] | None = None
) -> HttpResponse:
    """Answer 503 where another process held the write lock of the database for longer than its ``timeout``."""
    log.warning("%s %s: %s", request.method, request.path, error)
    message = f"Another process is writing to the database. {_describe_effect(request, resend)}"
    if is_api_request(request):
        return problems.answer_problem(request, BUSY, message)
    facts = {"code": BUSY, "title": problems.BY_CODE[BUSY].title, "message": message, "store": "the database"}
    return _write(request, facts, resend)


def _describe_effect(request: HttpRequest, resend: list[tuple[str, str]] | None) -> str:
    return UNCHANGED if request.method in ("GET", "HEAD") else REPEATABLE if resend else UNKNOWN


def _write(request: HttpRequest, facts: dict[str, str], resend: list[tuple[str, str]] | None) -> HttpResponse:
    if "text/html" not in request.headers.get("Accept", "text/html"):
        response: HttpResponse = JsonResponse({"error": facts | {"request": request_id.get()}}, status=503)
    else:
        response = HttpResponse(_render_page(facts, request, resend), status=503)
    response["Retry-After"] = str(RETRY_AFTER)
    response["Cache-Control"] = "no-store"
    return response


def _find_shown_node(request: HttpRequest, error: BaseException) -> str:
    """Return the node for a person who is logged in. An address inside of the installation is shown to nobody else."""
    if not (node := find_node(error)):
        return ""
    if hasattr(request, "caller"):  # a token of the API
        return node
    try:
        return node if request.user.is_authenticated else ""
    except Exception as away:
        if is_outage(away):
            return ""
        raise


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer an error outside of any view (``handler500``), as when the session is written."""
    error = sys.exc_info()[1]
    if error is not None and is_locked(error):
        return answer_locked(request, error)
    return answer(request, error) if is_outage(error) else fault(request)


def _render_page(facts: dict[str, str], request: HttpRequest, resend: list[tuple[str, str]] | None) -> str:
    """Render the page. What was read is loaded again once Redis answers; a form is sent again by a person only."""
    # Without the request: its user is in a session, and the sessions are where the outage is.
    form = {"resend": resend, "action": request.path, "csrf_token": get_token(request)} if resend else {}
    context = (
        facts
        | form
        | {"reads": request.method in ("GET", "HEAD"), "retry_after": RETRY_AFTER, "theme": themes.theme_of(request)}
    )
    try:
        return render_to_string("signalbox/503.html", context)
    except TemplateDoesNotExist:
        return PLAIN.format(**facts)


Found = TypeVar("Found")
SOME_NODE = "a node"  # where the error does not name it
AWAY = "what is left out -> the node of the cluster that does not answer"  # describes ``away`` in the API


class Panels:
    """The panels of one page. ``away``: name of a panel -> the node that does not answer; templates show it by
    ``signalbox/shared/_away.html``."""

    def __init__(self) -> None:
        self.away: dict[str, str] = {}

    def read(self, name: str, read: Callable[[], Found], otherwise: Found) -> Found:
        """Return what ``read`` returns; ``otherwise`` where a node of a cluster does not answer. A single server that
        does not answer has no other panels: its error is raised. A page does not wait for a panel."""
        try:
            with retry_for(0):
                return read()
        except Exception as error:
            if not (is_spread() and is_outage(error)):
                raise
            self.away[name] = find_node(error) or SOME_NODE
            log.warning("the panel %s is left out: %s", name, error)
            return otherwise
