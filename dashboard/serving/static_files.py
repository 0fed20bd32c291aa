"""Serves static files under ASGI with whitenoise, without a thread for each request."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import NotARegularFileError

CHUNK = 65536  # bytes
ENCODED = ("", ".gz", ".br")  # a file, and the compressed ones whitenoise looks for beside it
Stamp = tuple[tuple[int, int] | None, ...]


class StaticFiles(WhiteNoiseMiddleware):
    """Whitenoise's own middleware is synchronous, and would push every request behind it into a thread.

    It also scans files once, and promises the lengths it found then. An update under a running site would break that
    promise and with it the page, so a file that changed since is scanned anew.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable) -> None:
        self._scanned: dict[str, tuple[str, Stamp]] = {}
        super().__init__(get_response)
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if iscoroutinefunction(self):
            return self._answer_async(request)
        found = self._look_up(request.path_info)
        return self.get_response(request) if found is None else self.serve(found, request)

    async def _answer_async(self, request: HttpRequest) -> HttpResponse:
        found = self._look_up(request.path_info)
        if found is None:
            return await self.get_response(request)
        return _stream(self.serve(found, request))

    def _look_up(self, url: str) -> Any:
        """Find the file as it is on disk now; None if there is none, or none any more."""
        if self.autorefresh:
            return self.find_file(url)
        if url in self._scanned:
            path, stamp = self._scanned[url]
            if _stamp(path) != stamp:
                self._scan(path, url)
        return self.files.get(url)

    def _scan(self, path: str, url: str) -> None:
        try:
            self.files[url] = self.get_static_file(path, url)
        except NotARegularFileError:
            self.files.pop(url, None)

    def get_static_file(self, path: str, url: str, stat_cache: dict[str, os.stat_result] | None = None) -> Any:
        """Return Whitenoise's file, and note what it is made from. The note is taken first: a change in between is seen
        the next time."""
        self._scanned[url] = (path, _stamp(path, os.stat if stat_cache is None else stat_cache.__getitem__))
        return super().get_static_file(path, url, stat_cache=stat_cache)

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        response = WhiteNoiseMiddleware.serve(static_file, request)
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        return response


def _stamp(path: str, look: Callable[[str], os.stat_result] = os.stat) -> Stamp:
    return tuple(_size_and_time(path + ending, look) for ending in ENCODED)


def _size_and_time(path: str, look: Callable[[str], os.stat_result]) -> tuple[int, int] | None:
    try:
        found = look(path)
    except (OSError, KeyError):
        return None
    return found.st_size, found.st_mtime_ns


def _stream(response: HttpResponse) -> HttpResponse:
    """Convert a response to what an ASGI server takes: a file read by an asynchronous iterator.

    The answer to a HEAD, or for a file that did not change, has no file, and is no stream then.
    """
    file = response.file_to_stream
    copy = HttpResponse(status=response.status_code)
    if file is not None:
        copy = StreamingHttpResponse(_read_chunks(file), status=response.status_code)
        copy._resource_closers.append(file.close)
    del copy["content-type"]
    for name, value in response.items():
        copy[name] = value
    return copy


async def _read_chunks(file: Any) -> AsyncIterator[bytes]:
    read = sync_to_async(file.read, thread_sensitive=False)
    while block := await read(CHUNK):
        yield block
