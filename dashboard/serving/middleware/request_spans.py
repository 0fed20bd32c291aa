"""Middleware: puts each request into a span, below that of the sender's ``traceparent``, where the project traces.

Where something else has done so already, such as OpenTelemetry's instrumentation of Django, it leaves that span alone.
The address is named by its route: ids and filters stand in addresses.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from django.http import HttpRequest, HttpResponse

from dashboard.shared.async_middleware import WrappingMiddleware
from machines.engine import tracing


class RequestSpans(WrappingMiddleware):
    """Behind that of the static files, which need no spans."""

    @contextmanager
    def wrap(self, request: HttpRequest) -> Iterator[Callable[[HttpResponse], HttpResponse]]:
        with tracing.serve(str(request.method), request.headers) as span:
            # Django logs an answer of 400 and more behind all middleware, where no span is current any more.
            request.trace_id = tracing.read_ids()["trace_id"]  # type: ignore[attr-defined]
            yield partial(_note, span, request)


def _note(span: tracing.Request | None, request: HttpRequest, response: HttpResponse) -> HttpResponse:
    if span is not None:
        match = request.resolver_match
        span.note_response(f"/{match.route}" if match else "", response.status_code)
    return response
