"""Middleware: attributes what a request changes and reveals to its sender.

Inside of the middleware that knows who that is and has a place for messages.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest

from dashboard.shared.async_middleware import AsyncMiddleware
from machines.audit import reveals
from machines.audit.request_context import current_request
from machines.audit.reveals import ShownFields


class AuditContext(AsyncMiddleware):
    """Sets the current request, and writes once at its end what it has shown of sensitive values."""

    def answer(self, request: HttpRequest) -> Any:
        with _collect(request) as collected:
            try:
                return self.get_response(request)
            finally:
                collected.write()

    async def answer_async(self, request: HttpRequest) -> Any:
        with _collect(request) as collected:
            try:
                return await self.get_response(request)
            finally:
                if collected:
                    await sync_to_async(collected.write)()


@contextmanager
def _collect(request: HttpRequest) -> Iterator[ShownFields]:
    outer = current_request.set(request)
    try:
        with reveals.collect_reveals() as found:
            yield found
    finally:
        current_request.reset(outer)
