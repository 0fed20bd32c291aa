"""Every error code the API may answer with: its HTTP status, its title, and what it means.

The engine's come from its classes, so that none is forgotten; those of the API itself stand here:

    SB712 too many of one's own at a time      SB713 the request is too large
    SB714 the site has too much to do
    SB708 a session sent no CSRF token         SB720 nobody is known by these credentials
    SB721 the request does not fit             SB722 a method that is not there
    SB723 the same Idempotency-Key, another request     SB724 the first request of that key is still under way
    SB725 the budget of requests is spent      SB726 a header or cursor is none

Errors as ``application/problem+json`` (RFC 9457): one place writes them, for all layers.

``type`` is the code's entry in the API's own pages; ``code`` is the code alone, for programs; the facts of an engine's
error stand beside them.
"""

import json
import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

from dashboard.site.mount_point import api_path
from machines.audit import redaction
from machines.audit.request_context import request_id
from machines.engine.errors import NARROWER, EngineUnavailable, SignalboxError, UnknownMachine
from machines.people import permissions as access
from machines.people.redaction import redactor_of

from .statuses import (
    BAD_REQUEST,
    BUSY,
    COOKIES_TOO_LARGE,
    CROWDED,
    FAULT,
    FORBIDDEN,
    NO_PAGE,
    STALE_FORM,
    TOO_LARGE,
    status_of,
    title_of,
)

log = logging.getLogger(__name__)

NOBODY, UNFIT, NO_METHOD, OTHER_REQUEST, UNDER_WAY, OVER_BUDGET, BAD_HEADER = (f"SB{n}" for n in range(720, 727))


@dataclass(frozen=True, slots=True)
class Code:
    code: str
    status: int
    title: str
    meaning: str


OWN = (
    Code(BAD_REQUEST, 400, "Bad request", "The request is malformed or too large."),
    Code(FORBIDDEN, 403, "Permission denied", "The account or the token does not have the required permission."),
    Code(NO_PAGE, 404, "Not found", "This address does not exist."),
    Code(STALE_FORM, 403, "CSRF token missing",
         "Requests that use a login session must send X-CSRFToken with every change."),
    Code(FAULT, 500, "Internal server error", "The error is logged. Whether anything changed is unknown."),
    Code(COOKIES_TOO_LARGE, 431, "Cookies too large", "The Cookie header exceeds the limit."),
    Code(CROWDED, 429, "Too many concurrent requests", "The caller has too many requests in progress."),
    Code(TOO_LARGE, 413, "Request body too large", "The body exceeds `limit` bytes."),
    Code(BUSY, 503, "Server busy",
         "The server is overloaded, or its SQLite database locked; retry after `Retry-After` seconds."),
    Code(NOBODY, 401, "Authentication required", "No credentials, or invalid ones: a wrong, expired or revoked token."),
    Code(UNFIT, 422, "Validation failed", "`errors` lists each invalid field with a JSON pointer."),
    Code(NO_METHOD, 405, "Method not allowed", "`Allow` lists the supported methods."),
    Code(OTHER_REQUEST, 422, "Idempotency key reused", "The same Idempotency-Key was used with a different request."),
    Code(UNDER_WAY, 409, "Request in progress",
         "The first request with this Idempotency-Key has not finished; try again."),
    Code(OVER_BUDGET, 429, "Too many requests", "Retry after `Retry-After` seconds."),
    Code(BAD_HEADER, 400, "Invalid header or cursor",
         "A header or a cursor is malformed, or was not issued by this server."),
)  # fmt: skip
BY_CODE = {one.code: one for one in OWN}


def list_codes() -> list[Code]:
    """List the codes in order."""
    classes = list(_list_classes(SignalboxError))
    meanings = [(one.code, one, " ".join((one.__doc__ or "").split()) or title_of(one)) for one in classes]
    by_name = {one.__name__: one for one in classes}
    for code, text in NARROWER.items():
        name, _, meaning = text.partition(": ")
        meanings.append((code, by_name[name], meaning))
    found = dict(BY_CODE)
    for code, kind, meaning in meanings:
        found.setdefault(code, Code(code, status_of(kind), title_of(kind), meaning))
    return [found[name] for name in sorted(found)]


def _list_classes(kind: type[SignalboxError]) -> Iterator[type[SignalboxError]]:
    for one in kind.__subclasses__():
        yield one
        yield from _list_classes(one)


MEDIA_TYPE = "application/problem+json"
MAX_NAMES = 100  # machines that the problem of one which is not there lists
MAX_LISTED = 100  # mistakes in one answer
MAX_NAME = 100  # characters of a name in a pointer
RETRY_AFTER = 5  # seconds, of a store that does not answer
UNKNOWN = "The result is unknown: repeat the request with the same Idempotency-Key."


def answer_problem(
    request: HttpRequest, code: str, detail: str = "", *, status: int | None = None, **facts: Any
) -> HttpResponse:
    """Answer with one of ``OWN``, or any other code with a ``status``. Facts never replace the standard members."""
    known = BY_CODE.get(code)
    status = status or (known.status if known else 500)
    title = facts.pop("title", "") or (known.title if known else "")
    return _write(request, status, title, code, detail or (known.meaning if known else ""), facts)


def answer_error(request: HttpRequest, error: SignalboxError, *, status: int | None = None) -> HttpResponse:
    """Answer an error of the engine or of a service."""
    if isinstance(error, EngineUnavailable):
        log.warning("%s %s: Redis did not answer: %s", request.method, request.path, error)
        return answer_unavailable(request, error.code, node=error.node if hasattr(request, "caller") else "")
    status = status or status_of(type(error))
    if status >= 500:
        log.error("%s %s: %s %s", request.method, request.path, error.code, error)
    facts = redact_facts(request, error)
    detail = str(facts.pop("message", error))
    facts.pop("code", None)
    if isinstance(error, UnknownMachine):
        facts["known"] = _list_visible_machines(request, error)
    return _write(request, status, title_of(type(error)), error.code, detail, facts)


def redact_facts(request: HttpRequest, error: SignalboxError) -> dict[str, Any]:
    """Return the error's facts as this caller may see them; without sensitive values for an unknown caller."""
    caller = getattr(request, "caller", None)
    explained = getattr(error, "explanation", None)
    match = request.resolver_match
    machine = (
        getattr(error, "machine", "")
        or getattr(explained, "machine", "")
        or (str(match.kwargs.get("machine", "")) if match else "")
    )
    if not machine:
        return error.facts()
    try:
        seen = redaction.strict_redactor(machine) if caller is None else redactor_of(caller.actor, machine)
        return seen.facts(error)
    except EngineUnavailable:  # which fields are sensitive is unknown now
        return {"code": error.code, "message": title_of(type(error))}


def _list_visible_machines(request: HttpRequest, error: UnknownMachine) -> list[str]:
    """List the known machines that the caller may see."""
    caller = getattr(request, "caller", None)
    scope = caller.actor.scope() if caller is not None else access.NOTHING
    return [name for name in error.known if name in scope][:MAX_NAMES]


def answer_unavailable(request: HttpRequest, code: str = EngineUnavailable.code, *, node: str = "") -> HttpResponse:
    """Answer that a store does not respond. ``node``: which of a cluster."""
    detail = f"The node {node} of the Redis Cluster does not answer." if node else "Redis does not answer."
    if request.method not in ("GET", "HEAD"):
        detail += f" {UNKNOWN}"
    return _write(request, 503, title_of(EngineUnavailable), code, detail, {"node": node} if node else {})


def answer_invalid(request: HttpRequest, errors: Iterable[Mapping[str, Any]]) -> HttpResponse:
    """Answer a request that does not fit its schema: each error with its place, as many as a person can read.

    Values that were sent are not repeated, and long names are cut: a small request gets no large answer.
    """
    all_of_them = list(errors)
    found = [_describe_invalid(error) for error in all_of_them[:MAX_LISTED]]
    count = "1 error" if len(all_of_them) == 1 else f"{len(all_of_them)} errors"
    listed = "" if len(found) == len(all_of_them) else f" for the first {MAX_LISTED}"
    return answer_problem(request, UNFIT, f"{count} in the request; see errors{listed}", errors=found)


def _describe_invalid(error: Mapping[str, Any]) -> dict[str, str]:
    place, *path = [str(part)[:MAX_NAME] for part in error.get("loc", ("body",))]
    facts = {"detail": str(error.get("msg", "")), "kind": str(error.get("type", ""))}
    if place == "body":
        # The first name is that of the operation's argument, which no client has written.
        return {"pointer": "#" + "".join(f"/{_escape(part)}" for part in path[1:]), **facts}
    return {"parameter": path[-1] if path else place, "in": place, **facts}


def _escape(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")


def _write(
    request: HttpRequest, status: int, title: str, code: str, detail: str, facts: Mapping[str, Any]
) -> HttpResponse:
    body = dict(facts) | {
        "type": f"{api_path()}docs#{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": request.path,
        "code": code,
        "request": request_id.get(),
    }
    response = HttpResponse(json.dumps(body, default=str), status=status, content_type=MEDIA_TYPE)
    response["Cache-Control"] = "no-store"
    if status == 503:
        response["Retry-After"] = str(facts.get("retry_after", RETRY_AFTER))
    if status == 429 and "retry_after" in facts:
        response["Retry-After"] = str(math.ceil(facts["retry_after"]))
    if status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="signalbox"'
    return response
