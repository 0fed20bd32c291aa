"""Handles the Idempotency-Key header: a POST that is sent twice takes effect once, and both requests get the same
answer.

The first response is kept for a day under caller, path and key, with a digest of the request; the header follows
the IETF's draft. Only an answer that says "done" (2xx) is kept: after any other nothing was changed, and the same key
may be tried again. Where the engine takes a key of its own it gets one made of this, so that even a request whose
answer was lost with the process counts once.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

from dashboard.serving.cache import get_shared_cache
from machines.conf.encryption.ciphers import decrypt, demand_readable, encrypt
from machines.people.actor import Actor
from machines.people.errors import Forbidden

DAY = 86_400  # seconds
UNDER_WAY = 60  # seconds a request may take before another with its key is let in
MAX_BODY = 256 * 1024  # characters of an answer that is kept
SHAPE = re.compile(r'"?([\x21\x23-\x7e]{1,200})"?', re.ASCII)
PURPOSE = "api.answer"
ALL = "*"  # every machine
KEPT_HEADERS = ("Content-Type", "ETag", "Location")


class BadKey(Exception):
    """The header holds no key."""


class OtherRequest(Exception):
    """The key came before, with another request."""


class StillUnderWay(Exception):
    """The first request of the key has not ended."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A key in use by this request. ``engine_key``: what the engine's own idempotency takes; ``reveals``: the machines
    of which its answer may hold what is sensitive."""

    slot: str
    digest: str
    engine_key: str
    reveals: list[str]


def key_of(request: HttpRequest) -> str | None:
    """Return the Idempotency-Key, which may be sent in the quotes of a structured field, or None without one. Raises
    BadKey."""
    header = request.headers.get("Idempotency-Key")
    if header is None:
        return None
    found = SHAPE.fullmatch(header.strip())
    if found is None:
        raise BadKey("an Idempotency-Key is 1 to 200 visible ASCII characters, in double quotes or bare")
    return found[1]


def claim(request: HttpRequest, caller: str, reveals: Callable[[], list[str]]) -> Claim | HttpResponse | None:
    """Claim the key of a request. Return None if it has no key, the first answer if there is one, else the claim, which
    ``settle`` has to end.

    ``reveals``: see ``list_revealed``. Raises BadKey, OtherRequest, StillUnderWay, Forbidden if the first answer may
    hold what the caller may no longer see, and what the cache raises when Redis is away.
    """
    key = key_of(request)
    if key is None:
        return None
    name = _digest(caller, request.path, key)
    sent, now = _digest(request.META.get("QUERY_STRING", ""), request.body), reveals()
    made = Claim(f"api:once:{name}", sent, f"api:{name[:40]}", now)
    cache = get_shared_cache()
    if cache.add(made.slot, {"digest": made.digest}, UNDER_WAY):
        return made
    held = cache.get(made.slot)
    if held is None:  # it ended between the two
        raise StillUnderWay
    if held["digest"] != made.digest:
        raise OtherRequest
    if "status" not in held:
        raise StillUnderWay
    if ALL not in now and not set(held.get("reveals", ())) <= set(now):
        raise Forbidden("reveal")
    return _repeat_response(held)


def list_revealed(actor: Actor, machine: str) -> list[str]:
    """List the machines on which the actor may see sensitive fields: the request's own, or all if it names none."""
    if machine:
        return [machine] if actor.may("reveal", machine) else []
    scope = actor.scope("reveal")
    return [ALL] if scope.all else sorted(scope.names)


def settle(made: Claim, response: HttpResponse | None) -> None:
    """Keep the answer of a success for repeats; else release the key. ``response`` is None if there is no answer."""
    cache = get_shared_cache()
    if response is None or not 200 <= response.status_code < 300 or len(response.content) > MAX_BODY:
        cache.delete(made.slot)
        return
    headers = {name: response[name] for name in KEPT_HEADERS if name in response}
    held = {"digest": made.digest, "status": response.status_code, "headers": headers, "reveals": made.reveals}
    body = response.content.decode()
    cache.set(made.slot, held | {"body": encrypt(body, PURPOSE) if made.reveals else body}, DAY)


def _repeat_response(held: dict[str, Any]) -> HttpResponse:
    body = decrypt(held["body"], PURPOSE)
    demand_readable("the first answer", body)
    response = HttpResponse(body, status=held["status"], headers=held["headers"])
    response["Idempotent-Replayed"] = "true"
    return response


def _digest(*parts: str | bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        raw = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        found.update(len(raw).to_bytes(8, "big") + raw)
    return found.hexdigest()
