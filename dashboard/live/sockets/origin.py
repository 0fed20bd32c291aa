"""Checks the origin of a websocket: only pages of this site may open one.

A browser sends its cookies along to any address a foreign page names, so the handshake must be checked
the way Django checks a POST: the ``Origin`` is this very host, or one of ``CSRF_TRUSTED_ORIGINS``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.utils.http import is_same_domain

BAD_ORIGIN = 4403  # close code
DEFAULT_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443"}


class SameOrigin:
    """Lets a websocket through when its origin is ours; else opens and closes it with 4403, so the page can tell."""

    def __init__(self, application: Callable[..., Awaitable[Any]]) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Callable, send: Callable) -> Any:
        headers = {name.lower(): value.decode("latin-1") for name, value in scope.get("headers", [])}
        if allows(headers.get(b"origin", ""), headers.get(b"host", ""), scope.get("scheme", "ws")):
            return await self.application(scope, receive, send)
        await send({"type": "websocket.accept"})
        return await send({"type": "websocket.close", "code": BAD_ORIGIN, "reason": "bad origin"})


def allows(origin: str, host: str, scheme: str) -> bool:
    """Return whether a page of ``origin`` may open a websocket (``scheme`` ws or wss) at ``host``."""
    try:
        parts = urlsplit(origin)
        _ = parts.port
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return False
    return _is_host(parts.scheme, parts.netloc, scheme, host) or _is_trusted(parts.scheme, parts.netloc)


def _is_host(origin_scheme: str, netloc: str, scheme: str, host: str) -> bool:
    domain, port = split_domain_port(host)
    allowed = settings.ALLOWED_HOSTS or [".localhost", "127.0.0.1", "[::1]"]
    if not domain or not validate_host(domain, allowed):
        return False
    origin_domain, origin_port = split_domain_port(netloc)
    # A proxy that ends TLS may hand the request on as ws: the scheme then says nothing, the host still does.
    return (origin_domain, origin_port or DEFAULT_PORTS[origin_scheme]) == (
        domain,
        port or (DEFAULT_PORTS[origin_scheme] if settings.SECURE_PROXY_SSL_HEADER else DEFAULT_PORTS.get(scheme, "80")),
    )


def _is_trusted(scheme: str, netloc: str) -> bool:
    for trusted in settings.CSRF_TRUSTED_ORIGINS:
        parts = urlsplit(trusted)
        if parts.scheme == scheme and is_same_domain(netloc.lower(), parts.netloc.lstrip("*").lower()):
            return True
    return False
