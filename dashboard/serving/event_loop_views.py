"""The two handlers of the site: one thread for each request, and what is answered on the event loop without one.

The loop answers health checks, static files, and refusals. So these do not wait for a place among the requests that
compute. They carry the headers that every answer of the site carries.
"""

import io
import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware
from django.template.loader import render_to_string
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import NotARegularFileError

from dashboard.shared.errors import problems
from dashboard.site.mount_point import is_api_request

from .health import healthz
from .middleware.content_security_policy import ContentSecurityPolicy
from .middleware.probe_hosts import accept_any_host
from .middleware.request_ids import RequestIds

Scope = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Refusal:
    """``code``: one of ``dashboard.shared.errors.problems``; ``retry_after``: seconds, 0 where coming back does not
    help."""

    code: str
    message: str
    retry_after: int = 0


class ThreadedHandler(ASGIHandler):
    """Runs Django's handler for each request in one thread.

    Django's handler takes a middleware that cannot wait into the thread and out again, twice each: with ours some
    fourteen changes of thread for a page, and while others compute each of them waits its turn for the interpreter.
    Here the whole of the middleware, the view and its template are one change.
    """

    def load_middleware(self, is_async: bool = True) -> None:
        """Load the chain that a WSGI server would run."""
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = await sync_to_async(self.get_response, thread_sensitive=True)(request)
        return response


class EventLoopHandler(ASGIHandler):
    """Sends no signals, since there is no connection of a thread to close."""

    def load_middleware(self, is_async: bool = True) -> None:
        self._static = StaticFiles(_answer_not_found)
        self._security = SecurityMiddleware(_answer_not_found)
        self._frames = XFrameOptionsMiddleware(_answer_not_found)
        self._checked = convert_exception_to_response(self._answer_request)
        self._middleware_chain = convert_exception_to_response(RequestIds(ContentSecurityPolicy(self._secure)))

    def takes(self, scope: Scope) -> bool:
        path = scope["path"]
        if path == "/healthz":
            return True
        return bool(path.startswith(settings.STATIC_URL) and self._static._look_up(path) is not None)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._answer(scope, send, None)

    async def refuse(self, scope: Any, send: Any, refusal: Refusal) -> None:
        await self._answer(scope, send, refusal)

    async def _answer(self, scope: Any, send: Any, refusal: Refusal | None) -> None:
        request = ASGIRequest(scope, io.BytesIO())
        request.refusal = refusal  # type: ignore[attr-defined]
        response = await self.get_response_async(request)
        try:
            await self.send_response(response, send)
        finally:
            for closer in response._resource_closers:
                closer()

    async def _secure(self, request: HttpRequest) -> HttpResponse:
        """Do what the middleware of the same names does for pages."""
        response = self._security.process_request(request) or await self._checked(request)
        return self._security.process_response(request, self._frames.process_response(request, response))

    async def _answer_request(self, request: HttpRequest) -> Any:
        accept_any_host(request)
        request.get_host()  # one that is not ours is refused
        refusal: Refusal | None = request.refusal  # type: ignore[attr-defined]
        if refusal is not None:
            return answer_refusal(request, refusal)
        if request.path_info == "/healthz":
            return await healthz(request)
        return await self._static.answer(request)


async def _answer_not_found(request: HttpRequest) -> HttpResponse:
    """Answer 404 behind the middleware that is called directly. A static file that disappears between two looks is
    missing."""
    return HttpResponse(status=404)


def answer_refusal(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """Answer with a page or a problem, made without session, user or engine."""
    known = problems.BY_CODE[refusal.code]
    if is_api_request(request):
        response = problems.answer_problem(request, refusal.code, refusal.message)
    else:
        facts = {"status": known.status, "code": refusal.code, "title": known.title, "message": refusal.message}
        page = render_to_string("signalbox/error.html", facts | {"request": request})
        response = HttpResponse(page, status=known.status)
    response["Cache-Control"] = "no-store"
    if refusal.retry_after:
        response["Retry-After"] = str(refusal.retry_after)
    return response


CHUNK = 65536  # bytes
ENCODED = ("", ".gz", ".br")  # a file, and the compressed ones whitenoise looks for beside it
Stamp = tuple[tuple[int, int] | None, ...]


class StaticFiles(WhiteNoiseMiddleware):
    """Whitenoise scans files once, and promises the lengths it found then. An update under a running site would break
    that promise and with it the page, so a file that changed since is scanned anew.
    """

    def __init__(self, get_response: Callable) -> None:
        self._scanned: dict[str, tuple[str, Stamp]] = {}
        super().__init__(get_response)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        found = self._look_up(request.path_info)
        return self.get_response(request) if found is None else self.serve(found, request)

    async def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer on the event loop, behind no other middleware."""
        found = self._look_up(request.path_info)
        return await self.get_response(request) if found is None else _stream(self.serve(found, request))

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
