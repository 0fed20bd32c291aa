"""Errors as ``application/problem+json`` (RFC 9457): one place that writes them, whoever met them.

``type`` is the code's entry in the API's own pages; ``code`` is the code alone, for programs; the facts of an engine's
error stand beside them.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable, Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from redis.exceptions import ResponseError

from dashboard.api import codes
from dashboard.pages.verdicts import status_of, title_of
from machines import access, masking
from machines.engine import permissions
from machines.engine.errors import EngineUnavailable, NotPermitted, SignalboxError, UnknownMachine
from machines.requested import request_id
from machines.services.reading import redactor_of

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
TYPES = "/api/v1/docs"
MOST_NAMES = 100  # machines that the problem of one which is not there lists
MOST_LISTED = 100  # mistakes in one answer
LONGEST_NAME = 100  # characters of a name in a pointer
RETRY_AFTER = 5  # seconds, of a store that does not answer
UNKNOWN = "The result is unknown: repeat the request with the same Idempotency-Key."


def problem(
    request: HttpRequest, code: str, detail: str = "", *, status: int | None = None, **facts: Any
) -> HttpResponse:
    """One of ``codes.OWN``, or any other with a ``status``; facts go beside the standard members, never over them."""
    known = codes.BY_CODE.get(code)
    status = status or (known.status if known else 500)
    title = facts.pop("title", "") or (known.title if known else "")
    return _written(request, status, title, code, detail or (known.meaning if known else ""), facts)


def of_error(request: HttpRequest, error: SignalboxError, *, status: int | None = None) -> HttpResponse:
    """What the engine or a service raised."""
    if isinstance(error, EngineUnavailable):
        log.warning("%s %s: Redis did not answer: %s", request.method, request.path, error)
        return unavailable(request, error.code)
    status = status or status_of(type(error))
    if status >= 500:
        log.error("%s %s: %s %s", request.method, request.path, error.code, error)
    facts = facts_of(request, error)
    detail = str(facts.pop("message", error))
    facts.pop("code", None)
    if isinstance(error, UnknownMachine):
        facts["known"] = _seen_by(request, error)
    return _written(request, status, title_of(type(error)), error.code, detail, facts)


def facts_of(request: HttpRequest, error: SignalboxError) -> dict[str, Any]:
    """The error's facts as this caller may see them; of a caller nobody knows, with nothing that is sensitive."""
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
        seen = masking.strict_redactor(machine) if caller is None else redactor_of(caller.actor, machine)
        return seen.facts(error)
    except EngineUnavailable:  # nobody can say now what is sensitive
        return {"code": error.code, "message": title_of(type(error))}


def _seen_by(request: HttpRequest, error: UnknownMachine) -> list[str]:
    """Of the machines that are there those the caller sees."""
    caller = getattr(request, "caller", None)
    scope = caller.actor.scope() if caller is not None else access.NOTHING
    return [name for name in error.known if name in scope][:MOST_NAMES]


def denied_by(error: BaseException | None) -> NotPermitted | None:
    """What the account lacks, where the server answered and only refused it something."""
    while error is not None:
        if isinstance(error, ResponseError) and permissions.denied(str(error)):
            return NotPermitted([named] if (named := permissions.named(str(error))) else [])
        error = error.__cause__
    return None


def unavailable(request: HttpRequest, code: str = EngineUnavailable.code) -> HttpResponse:
    """A store does not answer."""
    detail = "Redis does not answer." if request.method in ("GET", "HEAD") else f"Redis does not answer. {UNKNOWN}"
    return _written(request, 503, title_of(EngineUnavailable), code, detail, {})


def invalid(request: HttpRequest, errors: Iterable[Mapping[str, Any]]) -> HttpResponse:
    """A request that does not fit its schema: each error with where it is, as many as a person can read.

    Values that were sent are not repeated, and long names are cut: a small request gets no large answer.
    """
    all_of_them = list(errors)
    found = [_invalid(error) for error in all_of_them[:MOST_LISTED]]
    count = "1 error" if len(all_of_them) == 1 else f"{len(all_of_them)} errors"
    listed = "" if len(found) == len(all_of_them) else f" for the first {MOST_LISTED}"
    return problem(request, codes.UNFIT, f"{count} in the request; see errors{listed}", errors=found)


def _invalid(error: Mapping[str, Any]) -> dict[str, str]:
    place, *path = [str(part)[:LONGEST_NAME] for part in error.get("loc", ("body",))]
    told = {"detail": str(error.get("msg", "")), "kind": str(error.get("type", ""))}
    if place == "body":
        # The first name is that of the operation's argument, which no client has written.
        return {"pointer": "#" + "".join(f"/{_escaped(part)}" for part in path[1:]), **told}
    return {"parameter": path[-1] if path else place, "in": place, **told}


def _escaped(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")


def _written(
    request: HttpRequest, status: int, title: str, code: str, detail: str, facts: Mapping[str, Any]
) -> HttpResponse:
    body = dict(facts) | {
        "type": f"{TYPES}#{code}",
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
