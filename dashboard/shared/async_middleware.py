"""Middleware that puts each request into a block, in a thread and in the event loop alike."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse


class WrappingMiddleware:
    """Puts each request into the block that ``wrap`` makes. The block yields what the response is passed through. A
    subclass whose block waits for something is not ``async_capable``: Django then runs it in a thread."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        if iscoroutinefunction(self):
            return self._answer_async(request)
        with self.wrap(request) as finish:
            return finish(self.get_response(request))

    async def _answer_async(self, request: HttpRequest) -> HttpResponse:
        with self.wrap(request) as finish:
            return finish(await self.get_response(request))

    def wrap(self, request: HttpRequest) -> AbstractContextManager[Callable[[HttpResponse], HttpResponse]]:
        raise NotImplementedError
