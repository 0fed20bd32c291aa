"""Middleware that runs in a thread and in the event loop alike.

Middleware without async support would move every request into a thread, static files too.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse


class AsyncMiddleware:
    """Answers by ``answer``, or by ``answer_async`` if ``get_response`` is async."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        return self.answer_async(request) if iscoroutinefunction(self) else self.answer(request)

    def answer(self, request: HttpRequest) -> Any:
        raise NotImplementedError

    async def answer_async(self, request: HttpRequest) -> Any:
        raise NotImplementedError


class WrappingMiddleware(AsyncMiddleware):
    """Puts each request into a block that waits for nothing. The block yields what the response is passed through."""

    def wrap(self, request: HttpRequest) -> AbstractContextManager[Callable[[HttpResponse], HttpResponse]]:
        raise NotImplementedError

    def answer(self, request: HttpRequest) -> Any:
        with self.wrap(request) as finish:
            return finish(self.get_response(request))

    async def answer_async(self, request: HttpRequest) -> HttpResponse:
        with self.wrap(request) as finish:
            return finish(await self.get_response(request))
