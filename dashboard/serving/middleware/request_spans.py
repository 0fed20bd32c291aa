"""Middleware: puts each request into a span, below that of the sender's ``traceparent``, where the project traces.

Where something else has done so already, such as OpenTelemetry's instrumentation of Django, it leaves that span alone.
The address is named by its route: ids and filters stand in addresses.
"""

from __future__ import annotations

from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse

from dashboard.shared.async_middleware import AsyncMiddleware
from machines.engine import tracing


class RequestSpans(AsyncMiddleware):
    """Behind that of the static files, which need no spans."""

    def __call__(self, request: HttpRequest) -> Any:
        if iscoroutinefunction(self):
            return self._answer_async(request)
        with tracing.serve(str(request.method), request.headers) as span:
            return _note(span, request, self.get_response(request))

    async def _answer_async(self, request: HttpRequest) -> HttpResponse:
        with tracing.serve(str(request.method), request.headers) as span:
            return _note(span, request, await self.get_response(request))


def _note(span: tracing.Request | None, request: HttpRequest, response: HttpResponse) -> HttpResponse:
    if span is not None:
        match = request.resolver_match
        span.note_response(f"/{match.route}" if match else "", response.status_code)
    return response
