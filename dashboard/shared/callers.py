"""Who asks, as far as can be told without a look-up: whoever shows the same session or token is one caller.

The cookie is cut out by hand: this happens on the event loop, and Python's own reader takes long over some of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from django.conf import settings

Headers = Iterable[tuple[bytes, bytes]]


def caller_of(headers: Headers) -> str:
    """A name for what the headers show, which it cannot be read from; "" for nothing."""
    found = dict(headers)
    shown = found.get(b"authorization", b"") or session_of(found.get(b"cookie", b""))
    return hashlib.sha256(shown).hexdigest()[:16] if shown else ""


def session_of(cookies: bytes) -> bytes:
    """The session's cookie among them, as it was sent; empty where there is none."""
    name = settings.SESSION_COOKIE_NAME.encode()
    for cookie in cookies.split(b";"):
        key, _, value = cookie.strip().partition(b"=")
        if key == name:
            return value
    return b""
