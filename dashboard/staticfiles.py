"""Static files under ASGI: whitenoise, without a thread for each request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware

CHUNK = 65536  # bytes


class StaticFiles(WhiteNoiseMiddleware):
    """Whitenoise's own middleware is synchronous, and would push every request behind it into a thread."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable) -> None:
        super().__init__(get_response)
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._later(request) if iscoroutinefunction(self) else super().__call__(request)

    async def _later(self, request: HttpRequest) -> HttpResponse:
        found = self.find_file(request.path_info) if self.autorefresh else self.files.get(request.path_info)
        if found is None:
            return await self.get_response(request)
        return _streamed(self.serve(found, request))

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        response = WhiteNoiseMiddleware.serve(static_file, request)
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        return response


def _streamed(response: HttpResponse) -> HttpResponse:
    """The same response with its file read by an asynchronous iterator, which is what an ASGI server takes."""
    if not getattr(response, "streaming", False) or response.file_to_stream is None:
        return response
    copy = StreamingHttpResponse(_chunks(response.file_to_stream), status=response.status_code)
    del copy["content-type"]
    for name, value in response.items():
        copy[name] = value
    copy._resource_closers.append(response.file_to_stream.close)
    return copy


async def _chunks(file: Any) -> AsyncIterator[bytes]:
    read = sync_to_async(file.read, thread_sensitive=False)
    while block := await read(CHUNK):
        yield block
