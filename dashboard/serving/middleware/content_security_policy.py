"""Middleware: adds the Content-Security-Policy (django-csp) and two more headers to every response.

The policy of Signalbox's own site is ``settings.CONTENT_SECURITY_POLICY``, made of ``DIRECTIVES``; in a project that
includes the pages, ``DIRECTIVES`` hold for them alone. The nonce, ``request.csp_nonce``, is made when a template asks
for it, so that answers without script or style name none. The pages of Django's admin use libraries that write markup
as text: there, and nowhere else, trusted types are not asked for.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from asgiref.sync import iscoroutinefunction
from csp.constants import NONCE, NONE, SELF
from csp.middleware import CSPMiddleware, PolicyParts
from django.conf import settings
from django.http import HttpRequest, HttpResponse

DIRECTIVES: dict[str, Any] = {
    "default-src": [NONE],
    "script-src": [SELF, NONCE],
    "script-src-attr": [NONE],
    "style-src": [SELF, NONCE],
    "style-src-attr": [NONE],
    "object-src": [NONE],
    "img-src": [SELF, "data:"],
    "font-src": [SELF],
    "connect-src": [SELF],
    "form-action": [SELF],
    "base-uri": [NONE],
    "frame-ancestors": [NONE],
    "require-trusted-types-for": ["'script'"],
    "trusted-types": ["signalbox"],
}
FILES = ("script-src", "style-src", "img-src", "font-src")
"""Directives about static files, which a project may serve from another origin."""
ADMIN = "/admin/"
NOT_IN_THE_ADMIN = {"require-trusted-types-for": None, "trusted-types": None}
# What this site never asks of a browser, so that no frame or script can either.
PERMISSIONS = ", ".join(
    f"{feature}=()"
    for feature in (
        "accelerometer", "autoplay", "camera", "display-capture",
        "geolocation", "gyroscope", "hid", "magnetometer", "microphone", "midi", "payment", "serial", "usb",
    )
)  # fmt: skip
ALWAYS = {"Permissions-Policy": PERMISSIONS, "Cross-Origin-Resource-Policy": "same-origin"}


class ContentSecurityPolicy(CSPMiddleware):
    """Runs the middleware of django-csp without a thread for each request: neither half of it waits for anything."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if iscoroutinefunction(self):
            return self._answer_async(request)
        self.process_request(request)
        return self.process_response(request, self.get_response(request))

    async def _answer_async(self, request: HttpRequest) -> HttpResponse:
        self.process_request(request)
        return self.process_response(request, await self.get_response(request))

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        for name, value in ALWAYS.items():
            response.headers.setdefault(name, value)
        return super().process_response(request, response)

    def get_policy_parts(self, request: HttpRequest, response: HttpResponse, report_only: bool = False) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        if request.path_info.startswith(ADMIN):
            parts.replace = NOT_IN_THE_ADMIN | (parts.replace or {})
        return parts


class PagePolicy(ContentSecurityPolicy):
    """The policy of our pages in a project, whatever policy the project has for its own."""

    def get_policy_parts(self, request: HttpRequest, response: HttpResponse, report_only: bool = False) -> PolicyParts:
        if report_only:
            return PolicyParts(config={})
        return PolicyParts(
            config=_make_directives(settings.STATIC_URL or ""), nonce=getattr(request, "_csp_nonce", None)
        )


@lru_cache(maxsize=8)
def _make_directives(static_url: str) -> dict[str, Any]:
    """Return ``DIRECTIVES``, with the origin of static files where it is another one."""
    parts = urlsplit(static_url)
    if not parts.netloc:
        return DIRECTIVES
    origin = f"{parts.scheme or 'https'}://{parts.netloc}"
    return DIRECTIVES | {name: [*DIRECTIVES[name], origin] for name in FILES}
