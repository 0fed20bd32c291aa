"""Middleware that runs in a thread and in the event loop alike.

Middleware without async support would move every request into a thread, static files too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse


class AsyncMiddleware:
    """Marks a subclass as async if its ``get_response`` is; its ``__call__`` then returns a coroutine."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)


class WrappingMiddleware(AsyncMiddleware):
    """Puts each request into a block that waits for nothing. The block yields what the response is passed through."""

    def wrap(self, request: HttpRequest) -> AbstractContextManager[Callable[[HttpResponse], HttpResponse]]:
        raise NotImplementedError

    def __call__(self, request: HttpRequest) -> Any:
        if iscoroutinefunction(self):
            return self._answer_async(request)
        with self.wrap(request) as finish:
            return finish(self.get_response(request))

    async def _answer_async(self, request: HttpRequest) -> HttpResponse:
        with self.wrap(request) as finish:
            return finish(await self.get_response(request))
