"""Sessions on the Patterns page: baskets of whoever looks. The browser holds the token, Redis its SHA-256."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.http import HttpRequest, QueryDict

from machines.connections import get_engine, get_pattern
from machines.engine import BadInput
from machines.engine.connection.client import Client
from machines.engine.keys import choose_partition
from machines.engine.pattern_keys import PatternKeys
from machines.patterns import Changed, Gone, Held, Sessions

TITLE = "Sessions"
TELLS = "Sessions under a token: sliding expiry, rotation and revocation; Redis stores only a hash of the token."

NAME, TTL, LIFETIME, MOST, PARTITIONS = "demo.baskets", 120, 600, 4, 2  # seconds; sessions of one person; parts
MOST_TEA = 99
TRAFFIC = "traffic"  # whom the demo's traffic calls itself
KEPT = "patterns_sessions"  # where in the login of this browser its token stands


def MAKE(redis: Client, prefix: str) -> Sessions:
    return Sessions(
        redis, NAME, prefix=prefix, ttl=TTL, lifetime=LIFETIME, most=MOST, drop=True, partitions=PARTITIONS
    )  # fmt: skip


def example(sessions: Sessions) -> None:
    made = sessions.create("user-7", {"tea": 1})  # made.token goes to the browser
    held = sessions.get(made.token)
    sessions.put(made.token, {"tea": 2}, expect=held.revision)
    with suppress(Changed):  # somebody else wrote first: expected 1, actual 2
        sessions.put(made.token, {"tea": 3}, expect=held.revision)
    turned = sessions.rotate(made.token)
    assert sessions.get(turned.token).state == {"tea": 2}
    assert sessions.revoke_all("user-7") == 1
    with suppress(Gone):
        sessions.get(turned.token)


def show(request: HttpRequest) -> dict[str, Any]:
    subject, own = str(request.user.pk), _handle(request)
    found = get_pattern(MAKE).of_each([subject, TRAFFIC])
    rows = found[subject]
    keys = PatternKeys(get_engine().keys.prefix).session(NAME, choose_partition(subject, PARTITIONS))
    return {
        "rows": rows, "others": found[TRAFFIC], "own": own, "has": any(row.handle == own for row in rows), "most": MOST,
        "keys": [keys.of(subject), *(keys.one(row.handle) for row in rows)],
    }  # fmt: skip


def begin(request: HttpRequest, asked: QueryDict) -> str:
    made = get_pattern(MAKE).create(str(request.user.pk), {"tea": 0})
    request.session[KEPT] = made.token
    return f"session {made.handle} created; Redis stores the SHA-256 of its token"


def put(request: HttpRequest, asked: QueryDict) -> str:
    """One more, if the basket is still at the revision the page showed."""
    sessions, token = get_pattern(MAKE), request.session.get(KEPT, "")
    held = sessions.get(token)
    count = min(MOST_TEA, _count(held) + 1)
    after = sessions.put(token, {"tea": count}, expect=_revision(asked))
    return f"{count} tea in the basket, revision {after.revision}"


def rotate(request: HttpRequest, asked: QueryDict) -> str:
    turned = get_pattern(MAKE).rotate(request.session.get(KEPT, ""))
    request.session[KEPT] = turned.token
    return f"token of session {turned.handle} rotated; the old one is invalid"


def revoke(request: HttpRequest, asked: QueryDict) -> str:
    if not get_pattern(MAKE).revoke_handle(str(request.user.pk), asked.get("handle", "")):
        raise Gone("the session had already ended")
    return f"session {asked['handle']} revoked"


def revoke_all(request: HttpRequest, asked: QueryDict) -> str:
    many = get_pattern(MAKE).revoke_all(str(request.user.pk))
    return f"{many} of yours {'is' if many == 1 else 'are'} revoked" if many else "no sessions"


def _handle(request: HttpRequest) -> str:
    return str(request.session.get(KEPT, "")).partition(".")[2].partition(".")[0]


def _count(held: Held) -> int:
    found = held.state.get("tea")
    return found if isinstance(found, int) else 0


def _revision(asked: QueryDict) -> int:
    text = asked.get("revision", "")
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise BadInput(f"revision is a whole number, not {text!r:.40}", code="SB402")
    return int(text)


ACTS = {"begin": begin, "put": put, "rotate": rotate, "revoke": revoke, "revoke_all": revoke_all}
