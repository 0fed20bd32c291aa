"""Answers on the event loop, without a thread: health checks, static files, and refusals.

So these answers do not wait for a place among the requests that compute. They carry the headers that every answer of
the site carries.
"""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware
from django.template.loader import render_to_string

from dashboard.shared.errors import problems
from dashboard.shared.errors import problems as codes
from dashboard.site.mount_point import is_api_request

from .health import healthz
from .middleware.content_security_policy import ContentSecurityPolicy
from .middleware.probe_hosts import accept_any_host
from .middleware.request_ids import RequestIds
from .static_files import StaticFiles

Answer = Callable[[HttpRequest], Awaitable[Any]]
Scope = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Refusal:
    """``code``: one of ``dashboard.shared.errors.problems``; ``retry_after``: seconds, 0 where coming back does not
    help."""

    code: str
    message: str
    retry_after: int = 0


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
        return await self._static(request)


async def _answer_not_found(request: HttpRequest) -> HttpResponse:
    """Answer 404 behind the middleware that is called directly. A static file that disappears between two looks is
    missing."""
    return HttpResponse(status=404)


def answer_refusal(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """Answer with a page or a problem, made without session, user or engine."""
    known = codes.BY_CODE[refusal.code]
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
