"""Refuses a Cookie header that would take too long to parse, before any code parses it.

Reading a quoted value takes Python before 3.11.10 and 3.12.6 time that grows with the square of its escapes
(CVE-2024-7592): a header of 60 KB held a process for seconds, from any sender. This site's own cookies need some 200
bytes and no escape; the rest is room for other sites on the same host.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from dashboard.live.messages import CloseCode
from dashboard.shared.errors import problems
from dashboard.shared.errors.statuses import COOKIES_TOO_LARGE
from dashboard.site.mount_point import is_api_request

MOST_BYTES = 8 * 1024
MOST_ESCAPES = 100
WORDS = (
    f"Cookies exceed the limit of {MOST_BYTES // 1024} KB and {MOST_ESCAPES} escapes: clear the cookies of this site."
)


def are_too_large(header: str | bytes) -> bool:
    escape = "\\" if isinstance(header, str) else b"\\"
    return len(header) > MOST_BYTES or header.count(escape) > MOST_ESCAPES  # type: ignore[arg-type]


class CookieLimits(MiddlewareMixin):
    """Stands in front of all middleware that reads cookies. The answer is plain text: a page would look for a login."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        return _refuse(request) if are_too_large(request.META.get("HTTP_COOKIE", "")) else None


def _refuse(request: HttpRequest) -> HttpResponse:
    if is_api_request(request):
        return problems.answer_problem(request, COOKIES_TOO_LARGE, WORDS)
    return HttpResponse(f"{WORDS} ({COOKIES_TOO_LARGE})\n", content_type="text/plain; charset=utf-8", status=431)


class SocketCookieLimits:
    """The same for a websocket, which is closed as that of a visitor who is not logged in."""

    def __init__(self, application: Callable[..., Awaitable[Any]]) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> Any:
        sent = b"; ".join(text for name, text in scope.get("headers", ()) if name == b"cookie")
        if not are_too_large(sent):
            return await self.application(scope, receive, send)
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": int(CloseCode.SIGNED_OUT)})
        return None
