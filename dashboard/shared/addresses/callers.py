"""Identifies the caller without a look-up: the same session or token is one caller.

The cookie is parsed by hand: this happens on the event loop, and Python's own parser is slow on some cookies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from django.conf import settings

Headers = Iterable[tuple[bytes, bytes]]


def caller_of(headers: Headers) -> str:
    """Return a hash of the session or token in the headers; "" without any."""
    found = dict(headers)
    shown = found.get(b"authorization", b"") or session_of(found.get(b"cookie", b""))
    return hashlib.sha256(shown).hexdigest()[:16] if shown else ""


def session_of(cookies: bytes) -> bytes:
    """Return the session's cookie as it was sent; empty if there is none."""
    name = settings.SESSION_COOKIE_NAME.encode()
    for cookie in cookies.split(b";"):
        key, _, value = cookie.strip().partition(b"=")
        if key == name:
            return value
    return b""
