"""Puts around each view what its answer needs in a project that includes ``dashboard.urls``, and around no other view.

Signalbox's own site has middleware for the same: request ids, Content-Security-Policy, time zones, the audit, error
pages. There, the project's middleware stays as it is; its own pages never come by here.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from asgiref.sync import async_to_sync, iscoroutinefunction
from django.core.exceptions import BadRequest, PermissionDenied, SuspiciousOperation
from django.db.transaction import non_atomic_requests
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver
from django.utils import translation
from django.utils.log import log_response

from dashboard.shared.errors.pages import EngineErrorMiddleware, bad_request, forbidden, not_found
from dashboard.shared.errors.redis_outage import RedisOutageMiddleware
from dashboard.shared.times import TimeZoneMiddleware
from dashboard.site.environment import is_own_site

from .audit_context import AuditContext
from .content_security_policy import PagePolicy
from .request_ids import RequestIds
from .request_spans import RequestSpans

View = Callable[..., Any]
Patterns = list[URLPattern | URLResolver]
LAYERS = (RequestIds, RequestSpans, PagePolicy, TimeZoneMiddleware, AuditContext)
"""From the outside in."""
LANGUAGE = "en"
"""Of our pages, and of the numbers in them that scripts read."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Content-Language": LANGUAGE,
}
"""Our pages have them whatever the settings of the project say; ids and filters stand in addresses."""


def wrap_patterns(patterns: Iterable[URLPattern | URLResolver]) -> Patterns:
    """Return the same patterns with each view wrapped, or as they are on Signalbox's own site."""
    return list(patterns) if is_own_site() else map_views(patterns, wrap_view)


def map_views(patterns: Iterable[URLPattern | URLResolver], wrap: Callable[[View], View]) -> Patterns:
    """Return the same patterns with ``wrap`` called on each view, at every depth."""
    return [_map_view(pattern, wrap) for pattern in patterns]


def _map_view(pattern: URLPattern | URLResolver, wrap: Callable[[View], View]) -> URLPattern | URLResolver:
    if isinstance(pattern, URLPattern):
        return URLPattern(pattern.pattern, wrap(pattern.callback), pattern.default_args, pattern.name)
    inner = map_views(pattern.url_patterns, wrap)
    return URLResolver(pattern.pattern, inner, pattern.default_kwargs, pattern.app_name, pattern.namespace)


def wrap_view(view: View) -> View:
    """Return the view with every layer around it.

    The layers know who asks and what they may do, so a middleware that sends everybody to a login leaves the view
    alone; and views commit for themselves, so the project's ATOMIC_REQUESTS does not hold.
    """
    run = async_to_sync(view) if iscoroutinefunction(view) else view

    @wraps(run)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        def innermost(request: HttpRequest) -> HttpResponse:
            try:
                response: HttpResponse = run(request, *args, **kwargs)
                return response
            except Exception as error:
                return _answer_error(request, error)

        handler: View = innermost
        for layer in reversed(LAYERS):
            handler = layer(handler)
        with translation.override(LANGUAGE):
            response: HttpResponse = handler(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    answer.login_required = False  # type: ignore[attr-defined]
    return non_atomic_requests(answer)


def _answer_error(request: HttpRequest, error: Exception) -> HttpResponse:
    """Answer what a view raised with a page or problem of ours. Anything unforeseen goes on to the project, which
    logs and reports it."""
    for layer in (EngineErrorMiddleware, RedisOutageMiddleware):
        answer = layer(_answer_nothing).process_exception(request, error)
        if answer is not None:
            return answer
    if isinstance(error, PermissionDenied):
        return _log(request, error, forbidden(request, error), "Forbidden (Permission denied): %s")
    if isinstance(error, Http404):
        return _log(request, error, not_found(request, error), "Not Found: %s")
    if isinstance(error, BadRequest | SuspiciousOperation):
        return _log(request, error, bad_request(request, error), "Bad request: %s")
    raise error


def _log(request: HttpRequest, error: Exception, response: HttpResponse, text: str) -> HttpResponse:
    log_response(text, request.path, response=response, request=request, exception=error)
    return response


def _answer_nothing(request: HttpRequest) -> HttpResponse:
    """Stand for a view in layers that are called only for the answer to an error."""
    raise NotImplementedError
