"""Middleware: adds the Content-Security-Policy and two more headers to every response.

The policy of Signalbox's own site is ``settings.SECURE_CSP``, made of ``DIRECTIVES``; in a project that
includes the pages, ``DIRECTIVES`` hold for them alone. The nonce, ``request.csp_nonce``, is made when a template asks
for it, so that answers without script or style name none. The pages of Django's admin use libraries that write markup
as text: there, and nowhere else, trusted types are not asked for.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from dashboard.shared.async_middleware import WrappingMiddleware
from machines.conf import conf

try:
    from django.utils.csp import CSP, LazyNonce, build_policy
except ModuleNotFoundError:  # Django 5.2
    from .csp_backport import CSP, LazyNonce, build_policy

DIRECTIVES: dict[str, Any] = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF, CSP.NONCE],
    "script-src-attr": [CSP.NONE],
    "style-src": [CSP.SELF, CSP.NONCE],
    "style-src-attr": [CSP.NONE],
    "object-src": [CSP.NONE],
    "img-src": [CSP.SELF, "data:"],
    "font-src": [CSP.SELF],
    "connect-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "base-uri": [CSP.NONE],
    "frame-ancestors": [CSP.NONE],
    "require-trusted-types-for": ["'script'"],
    "trusted-types": ["signalbox"],
}
FILES = ("script-src", "style-src", "img-src", "font-src")
"""Directives about static files, which a project may serve from another origin."""
ENDPOINT = "csp"
"""What the header ``Reporting-Endpoints`` calls the address of ``CSP_REPORTS``."""
ADMIN = "/admin/"
DEBUG_PAGES = (404, 500)
"""Django's pages for developers have their styles and scripts inside."""
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


class ContentSecurityPolicy(WrappingMiddleware):
    """Answers without a thread for each request: neither half of it waits for anything."""

    @contextmanager
    def wrap(self, request: HttpRequest) -> Iterator[Callable[[HttpResponse], HttpResponse]]:
        request.csp_nonce = request._csp_nonce = LazyNonce()  # type: ignore[attr-defined]
        yield partial(self.process_response, request)

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        for name, value in ALWAYS.items():
            response.headers.setdefault(name, value)
        if not (settings.DEBUG and response.status_code in DEBUG_PAGES):
            directives = self.get_directives(request)
            if address := conf.CSP_REPORTS:
                directives = directives | {"report-uri": [address], "report-to": [ENDPOINT]}
                response.headers.setdefault("Reporting-Endpoints", f'{ENDPOINT}="{address}"')
            policy = build_policy(directives, request._csp_nonce)  # type: ignore[attr-defined]
            response.headers.setdefault("Content-Security-Policy", policy)
        return response

    def get_directives(self, request: HttpRequest) -> dict[str, Any]:
        directives: dict[str, Any] = settings.SECURE_CSP
        return directives | NOT_IN_THE_ADMIN if request.path_info.startswith(ADMIN) else directives


class PagePolicy(ContentSecurityPolicy):
    """The policy of our pages in a project, whatever policy the project has for its own."""

    def get_directives(self, request: HttpRequest) -> dict[str, Any]:
        return _make_directives(settings.STATIC_URL or "")


@lru_cache(maxsize=8)
def _make_directives(static_url: str) -> dict[str, Any]:
    """Return ``DIRECTIVES``, with the origin of static files where it is another one."""
    parts = urlsplit(static_url)
    if not parts.netloc:
        return DIRECTIVES
    origin = f"{parts.scheme or 'https'}://{parts.netloc}"
    return DIRECTIVES | {name: [*DIRECTIVES[name], origin] for name in FILES}
