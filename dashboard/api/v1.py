"""Adds the operations to the API, and maps each kind of error to a response."""

from collections.abc import Callable
from typing import Any

from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.module_loading import import_string
from django_redis.exceptions import ConnectionInterrupted
from ninja.errors import HttpError, ValidationError
from redis.exceptions import RedisError

from dashboard.shared.errors import problems
from dashboard.shared.errors.statuses import BAD_REQUEST, FORBIDDEN, NO_PAGE, STALE_FORM, TOO_LARGE, title_of
from machines.catalog.errors import ApprovalNeeded, DraftChanged
from machines.engine import Conflict, Refused, SignalboxError
from machines.engine.connection.server_permissions import find_denial
from machines.instances import sm_keys
from machines.instances.bulks.store import OrderLost
from machines.patterns import Changed

from .framework import authentication, idempotency
from .framework.authentication import InAddress, NoCsrf, Unauthorized
from .framework.openapi import api
from .framework.operation import TooLarge, UnknownTerms
from .framework.request_terms import BadCursor, BadTag
from .framework.schemas import Mistaken, file_request

NAMES = (
    "account.api.callers_group", "account.api.sessions_group",
    "overview.api.group", "alarms.api.group",
    "catalog.api.group", "insight.api.group",
    "catalog.versions.api.drafts_group", "catalog.versions.plans_api.group", "catalog.versions.api.rollouts_group",
    "instances.api.group", "instances.api.repairs_group", "jobs.api.queues_group", "jobs.api.jobs_group",
    "jobs.workers.api.group", "jobs.failures.api.group", "instances.bulks.api.group",
    "schedules.api.group", "approvals.api.group", "audit.api.group", "overview.api.statistics_group",
    "webhooks.api.group", "account.api.views_group",
    "instances.sm.api.group",
)  # fmt: skip
"""Groups of operations in ``dashboard``, in the order of the document. Rooms import the framework: they are named here
and not imported."""
GROUPS = tuple(import_string(f"dashboard.{name}") for name in NAMES)

api.openapi_extra = {"tags": [{"name": group.name, "description": group.about} for group in GROUPS]}
for _group in GROUPS:
    api.add_router("", _group.router)


def _make_handler(code: str) -> Callable[[HttpRequest, Exception], HttpResponse]:
    return lambda request, error: problems.answer_problem(request, code, str(error))


for _kind, _code in {
    Unauthorized: problems.NOBODY,
    NoCsrf: STALE_FORM,
    InAddress: problems.BAD_HEADER,
    authentication.TooMany: problems.OVER_BUDGET,
    idempotency.BadKey: problems.BAD_HEADER,
    idempotency.OtherRequest: problems.OTHER_REQUEST,
    idempotency.StillUnderWay: problems.UNDER_WAY,
    BadCursor: problems.BAD_HEADER,
    BadTag: problems.BAD_HEADER,
    OrderLost: NO_PAGE,
    ObjectDoesNotExist: NO_PAGE,
    PermissionDenied: FORBIDDEN,
}.items():
    api.add_exception_handler(_kind, _make_handler(_code))


@api.exception_handler(SignalboxError)
def _answer_engine_error(request: HttpRequest, error: SignalboxError) -> HttpResponse:
    status = 412 if isinstance(error, Conflict | Changed | DraftChanged) and "If-Match" in request.headers else None
    return problems.answer_error(request, error, status=status)


@api.exception_handler(ApprovalNeeded)
def _takes_two(request: HttpRequest, error: ApprovalNeeded) -> HttpResponse:
    try:
        return file_request(request, error)
    except SignalboxError as refused:
        return problems.answer_error(request, refused)


@api.exception_handler(sm_keys.Moved)
def _answer_moved(request: HttpRequest, error: sm_keys.Moved) -> HttpResponse:
    detail = f"It stands in {error.now.current!r} now: somebody else moved it first."
    return problems.answer_problem(
        request, Conflict.code, detail, status=409, title=title_of(Conflict), actual=error.now.current
    )


@api.exception_handler(sm_keys.MoveRefused)
def _answer_move_refused(request: HttpRequest, error: sm_keys.MoveRefused) -> HttpResponse:
    return problems.answer_problem(request, Refused.code, str(error), status=422, title=title_of(Refused))


@api.exception_handler(Http404)
def _answer_missing(request: HttpRequest, error: Http404) -> HttpResponse:
    detail = error.args[0] if error.args and isinstance(error.args[0], str) else ""
    return problems.answer_problem(request, NO_PAGE, detail)


@api.exception_handler(ValidationError)
def _answer_unfit(request: HttpRequest, error: ValidationError) -> HttpResponse:
    return problems.answer_invalid(request, error.errors)


@api.exception_handler(TooLarge)
def _answer_too_large(request: HttpRequest, error: TooLarge) -> HttpResponse:
    return problems.answer_problem(request, TOO_LARGE, str(error), limit=error.limit)


@api.exception_handler(Mistaken)
def _answer_mistaken(request: HttpRequest, error: Mistaken) -> HttpResponse:
    return problems.answer_invalid(request, [{"loc": ("body", "", *error.path), "msg": str(error), "type": "mistaken"}])


@api.exception_handler(UnknownTerms)
def _answer_unknown_terms(request: HttpRequest, error: UnknownTerms) -> HttpResponse:
    detail = {"msg": "the operation takes no such parameter", "type": "extra_forbidden"}
    return problems.answer_invalid(request, [{"loc": ("query", name[:100]), **detail} for name in error.names])


@api.exception_handler(HttpError)
def _answer_http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    return problems.answer_problem(request, BAD_REQUEST, str(error), status=error.status_code)


@api.exception_handler(RedisError)
@api.exception_handler(ConnectionInterrupted)
def _answer_redis_error(request: HttpRequest, error: Exception) -> HttpResponse:
    denied = find_denial(error)
    return problems.answer_unavailable(request) if denied is None else problems.answer_error(request, denied)


@api.exception_handler(Exception)
def _answer_fault(request: HttpRequest, error: Exception) -> Any:
    """Raise the error again: Django logs it and answers it."""
    raise error
