"""Wraps every operation. In this order: authentication, rate limit, permission, and the check for a repeated request.

The declaration of an operation states everything::

    group = Group("instances", "What happens to one instance.")

    @group.post("/machines/{name:machine}/instances/{instance:id}/events", right="fire", answers=...)
    def fire_event(request, machine: str, id: str, body: Firing): ...

The function names the operation, ``fireEvent``; the first paragraph of its docstring is the summary, the others are the
description.

Reading without permission is refused here. A change without permission is refused by the service, which records it in
the audit.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import cleandoc
from typing import Any

from django.http import HttpRequest, HttpResponse
from django_redis.exceptions import ConnectionInterrupted
from ninja import Router
from ninja.decorators import decorate_view
from redis.exceptions import RedisError

from dashboard.shared.redacted_engine import RedactedEngine
from machines.people.actor import Actor
from machines.people.errors import Forbidden

from . import authentication, idempotency, openapi
from .authentication import Caller, Unauthorized, authenticate
from .idempotency import Claim
from .openapi import api

log = logging.getLogger(__name__)
View = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """``right``: asked of the machine in the path; without one, of any machine, or ``everywhere`` of all of them.
    ``answers``: the schema of the response, or one for each status.

    ``changes``: whether it does something; ``once``: whether an Idempotency-Key marks a repeat of the same request: not
    where the answer holds a secret, which is not kept, or belongs to one session alone; ``recorded``: whether its
    service refuses it by itself, and records that in the audit; ``costly``: whether its body is read at length, so that
    its size counts in the budget; ``most``: bytes of the body for an account that may not publish.

    For the document: ``refusals``, statuses of errors beside those of every operation; ``matches``: whether it takes
    If-Match; ``example`` of a body; ``media_type`` of an answer that is not JSON.
    """

    id: str
    method: str
    path: str
    right: str
    answers: Any
    summary: str
    changes: bool
    recorded: bool
    everywhere: bool = False
    once: bool = True
    costly: bool = False
    most: int | None = None
    refusals: tuple[int, ...] = ()
    matches: bool = False
    example: Any = None
    media_type: str = ""


OPERATIONS: dict[str, Operation] = {}
"""Every operation by its id: tests and the pages of the API go through them."""

TERMS: dict[str, frozenset[str]] = {}
"""The names that each operation takes in the query of its address."""


class Group:
    """The operations of one noun."""

    def __init__(
        self, name: str, about: str, *, right: str = "", everywhere: bool = False, recorded: bool = True
    ) -> None:
        """Create the group. ``recorded``: services make its changes; they refuse by themselves and record the
        refusal. ``right``, ``everywhere``: of its operations that do not state their own."""
        self.name = name
        self.about = about
        self.recorded = recorded
        self.shared = {"right": right, "everywhere": everywhere}
        self.router = Router(tags=[name])

    def get(self, path: str, **more: Any) -> Callable[[View], View]:
        return self._register("GET", path, changes=False, **more)

    def post(self, path: str, *, changes: bool = True, **more: Any) -> Callable[[View], View]:
        return self._register("POST", path, changes=changes, **more)

    def delete(self, path: str, **more: Any) -> Callable[[View], View]:
        return self._register("DELETE", path, changes=True, **more)

    def put(self, path: str, **more: Any) -> Callable[[View], View]:
        return self._register("PUT", path, changes=True, **more)

    def _register(
        self, method: str, path: str, *, changes: bool, once: bool = True, id: str = "", summary: str = "", **more: Any
    ) -> Callable[[View], View]:
        recorded = changes and self.recorded

        def decorate(view: View) -> View:
            first, _, rest = cleandoc(view.__doc__ or "").partition("\n\n")
            said, about = (summary, first) if summary else (first.rstrip("."), rest)
            made = Operation(
                id=id or _make_camel(view.__name__), method=method, path=path, summary=said, changes=changes,
                once=changes and once, recorded=recorded, **self.shared | more,
            )  # fmt: skip
            if made.id in OPERATIONS:
                raise ValueError(f"two operations are called {made.id}")
            OPERATIONS[made.id] = made
            registered: View = self.router.api_operation(
                [method], path, operation_id=made.id, summary=said, response=made.answers,
                description="\n\n".join(part for part in (about, openapi.needs(made)) if part),
                openapi_extra=openapi.describe(made),
            )(view)  # fmt: skip
            models = self.router.path_operations[path].operations[-1].models
            queries = (model for model in models if model.__ninja_param_source__ == "query")
            TERMS[made.id] = frozenset(name for model in queries for name in model.__ninja_flatten_map__)
            return decorate_view(_make_entrance(made))(registered)

        return decorate


def _make_camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)


class TooLarge(Exception):
    """``limit``: the bytes that this caller may send to the operation."""

    def __init__(self, limit: int, of: str) -> None:
        super().__init__(f"with these permissions the body of {of} has at most {limit:,} bytes")
        self.limit = limit


class UnknownTerms(Exception):
    """The query of an address has names that the operation does not know: ``names``."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


def caller_of(request: HttpRequest) -> Caller:
    caller: Caller = request.caller  # type: ignore[attr-defined]
    return caller


def actor_of(request: HttpRequest) -> Actor:
    return caller_of(request).actor


def engine_of(request: HttpRequest) -> RedactedEngine:
    """Return the engine as the caller may see it."""
    return RedactedEngine(actor_of(request))


def engine_key(request: HttpRequest) -> str | None:
    """Return the key by which the engine recognizes a repeat of this request; None if the client named no key."""
    made: Claim | None = getattr(request, "claim", None)
    return made.engine_key if made else None


def _make_entrance(operation: Operation) -> Callable[[View], View]:
    def around(run: View) -> View:
        @wraps(run)
        def enter(request: HttpRequest, **kw: Any) -> HttpResponse:
            limit, response = None, None
            try:
                limit = _admit(request, operation)
                _check_size(request, operation)
                _check_terms(request, operation)
                response = _repeat(request, operation, kw) or run(request, **kw)
            except (authentication.TooMany, Unauthorized) as error:
                limit, response = error.limit, _answer_error(request, error)
            except Exception as error:
                response = _answer_error(request, error)
            finally:
                _settle(request, response)
            if limit is not None:
                getattr(request, "charged", limit).mark(response)
            return response

        return enter

    return around


def _admit(request: HttpRequest, operation: Operation) -> authentication.Limit | None:
    try:
        caller = authenticate(request)
    except Unauthorized as error:
        error.limit = authentication.spend_stranger(request)
        raise
    request.caller, request.acting = caller, caller.actor  # type: ignore[attr-defined]
    cost = authentication.cost_of(_size(request)) if operation.costly else 1
    return authentication.spend(caller.key, request.META.get("REMOTE_ADDR") or "", cost)


def charge(request: HttpRequest, cpu: float) -> None:
    """Charge the caller's budget for what an operation took beyond its request: ``cpu`` seconds of processor time."""
    if (limit := authentication.charge(caller_of(request).key, cpu)) is not None:
        request.charged = limit  # type: ignore[attr-defined]


def _size(request: HttpRequest) -> int:
    length = request.META.get("CONTENT_LENGTH") or "0"
    return int(length) if length.isdigit() else 0


def _check_size(request: HttpRequest, operation: Operation) -> None:
    """Check the size of the body before it is read as JSON. Raises TooLarge."""
    most = operation.most
    if most is None or max(_size(request), len(request.body)) <= most:
        return
    if not caller_of(request).actor.anywhere("publish"):
        raise TooLarge(most, operation.id)


def _check_terms(request: HttpRequest, operation: Operation) -> None:
    """Refuse unknown terms: a typing error must not look like a list without a filter. Raises UnknownTerms."""
    if request.GET and (unknown := sorted(set(request.GET) - TERMS[operation.id])):
        raise UnknownTerms(unknown)


def _repeat(request: HttpRequest, operation: Operation, path: Mapping[str, Any]) -> HttpResponse | None:
    """Check the permission, then look for the first answer to the same request."""
    caller, machine = caller_of(request), path.get("machine", "")
    allowed = _may(caller.actor, operation, machine)
    if not allowed and not operation.recorded:
        raise Forbidden(operation.right, machine)
    if not allowed or not operation.once:
        return None
    made = idempotency.claim(request, caller.key, lambda: idempotency.list_revealed(caller.actor, machine))
    if isinstance(made, HttpResponse):
        return made
    request.claim = made  # type: ignore[attr-defined]
    return None


def _may(actor: Actor, operation: Operation, machine: str) -> bool:
    if machine or operation.everywhere:
        return actor.may(operation.right, machine)
    return actor.anywhere(operation.right)


def _settle(request: HttpRequest, response: HttpResponse | None) -> None:
    """Settle the claim of a request. ``response`` is None if the outcome is unknown. A failure here changes nothing
    else."""
    made: Claim | None = getattr(request, "claim", None)
    if made is None:
        return
    try:
        idempotency.settle(made, response)
    except (RedisError, ConnectionInterrupted) as error:
        log.warning("%s %s: the answer could not be kept for a repeat: %s", request.method, request.path, error)


def _answer_error(request: HttpRequest, error: Exception) -> HttpResponse:
    response: HttpResponse = api.on_exception(request, error)
    return response
