"""The Idempotency-Key header: the same POST sent twice counts once, and is answered twice.

What came of the first is kept for a day under caller, path and key, with a digest of the request; the header follows
the IETF's draft. Only an answer that says "done" (2xx) is kept: after any other nothing was changed, and the same key
may be tried again. Where the engine takes a key of its own it gets one made of this, so that even a request whose
answer was lost with the process counts once.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse

DAY = 86_400  # seconds
UNDER_WAY = 60  # seconds a request may take before another with its key is let in
MAX_BODY = 256 * 1024  # characters of an answer that is kept
SHAPE = re.compile(r'"?([\x21\x23-\x7e]{1,200})"?', re.ASCII)
KEPT_HEADERS = ("Content-Type", "ETag", "Location")


class BadKey(Exception):
    """The header holds no key."""


class OtherRequest(Exception):
    """The key came before, with another request."""


class StillUnderWay(Exception):
    """The first request of the key has not ended."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A key in use by this request. ``engine_key``: what the engine's own idempotency takes."""

    slot: str
    digest: str
    engine_key: str


def key_of(request: HttpRequest) -> str | None:
    """As it was sent, with or without the quotes of a structured field; None where there is none. Raises BadKey."""
    header = request.headers.get("Idempotency-Key")
    if header is None:
        return None
    found = SHAPE.fullmatch(header.strip())
    if found is None:
        raise BadKey("an Idempotency-Key is 1 to 200 visible ASCII characters, in double quotes or bare")
    return found[1]


def claim(request: HttpRequest, caller: str) -> Claim | HttpResponse | None:
    """None without a key; the first answer where there is one; else the claim, which ``settle`` has to end.

    Raises BadKey, OtherRequest, StillUnderWay, and what the cache raises when Redis is away.
    """
    key = key_of(request)
    if key is None:
        return None
    name = _digest(caller, request.path, key)
    made = Claim(f"api:once:{name}", _digest(request.META.get("QUERY_STRING", ""), request.body), f"api:{name[:40]}")
    if cache.add(made.slot, {"digest": made.digest}, UNDER_WAY):
        return made
    held = cache.get(made.slot)
    if held is None:  # it ended between the two
        raise StillUnderWay
    if held["digest"] != made.digest:
        raise OtherRequest
    if "status" not in held:
        raise StillUnderWay
    return _again(held)


def settle(made: Claim, response: HttpResponse | None) -> None:
    """Keep the answer, or let go of the key; None: there is no answer."""
    if response is None or not 200 <= response.status_code < 300 or len(response.content) > MAX_BODY:
        cache.delete(made.slot)
        return
    headers = {name: response[name] for name in KEPT_HEADERS if name in response}
    held = {"digest": made.digest, "status": response.status_code, "headers": headers}
    cache.set(made.slot, held | {"body": response.content.decode()}, DAY)


def _again(held: dict[str, Any]) -> HttpResponse:
    response = HttpResponse(held["body"], status=held["status"], headers=held["headers"])
    response["Idempotent-Replayed"] = "true"
    return response


def _digest(*parts: str | bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        raw = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        found.update(len(raw).to_bytes(8, "big") + raw)
    return found.hexdigest()
