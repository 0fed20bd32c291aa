"""Middleware: attributes what a request changes and reveals to its sender.

Inside of the middleware that knows who that is and has a place for messages.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.http import HttpRequest, HttpResponse

from dashboard.shared.async_middleware import WrappingMiddleware
from machines.audit import reveals
from machines.audit.request_context import current_request


class AuditContext(WrappingMiddleware):
    """Sets the current request, and writes once at its end what it has shown of sensitive values."""

    async_capable = False

    @contextmanager
    def wrap(self, request: HttpRequest) -> Iterator[Callable[[HttpResponse], HttpResponse]]:
        outer = current_request.set(request)
        try:
            with reveals.collect_reveals() as collected:
                try:
                    yield lambda response: response
                finally:
                    collected.write()
        finally:
            current_request.reset(outer)
