"""Runs Django's handler for each request in one thread.

Django's handler takes a middleware that cannot wait into the thread and out again, twice each: with ours some fourteen
changes of thread for a page, and while others compute each of them waits its turn for the interpreter. Here the whole
of the middleware, the view and its template are one change.
"""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase


class ThreadedHandler(ASGIHandler):
    def load_middleware(self, is_async: bool = True) -> None:
        """Load the chain that a WSGI server would run."""
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = await sync_to_async(self.get_response, thread_sensitive=True)(request)
        return response
