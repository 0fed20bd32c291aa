"""The throttle on the Patterns page: one limit for everybody who looks, by both ways of counting."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, QueryDict

from machines.connections import get_engine, get_throttle
from machines.engine.pattern_keys import PatternKeys
from machines.patterns import Throttle

TITLE = "Throttle"
TELLS = "Rate limits shared by all processes, checked in one call."
MAKE = Throttle

NAME, KEY = "demo.hits", "everybody"
LIMIT, PER = 5, 20  # seconds


def example(throttle: Throttle) -> None:
    verdict = throttle.take("demo.example", "token-7", limit=2, per=60)
    assert verdict.allowed
    assert verdict.remaining == 1
    throttle.take("demo.example", "token-7", limit=2, per=60)
    refused = throttle.take("demo.example", "token-7", limit=2, per=60)
    assert not refused.allowed
    assert 0 < refused.retry_after <= 30  # seconds


def show(request: HttpRequest) -> dict[str, Any]:
    keys = PatternKeys(get_engine().keys.prefix)
    ways = [
        {"act": "hit", "title": "Steady rate", "tells": f"burst of {LIMIT}, then one every {PER // LIMIT} s"},
        {"act": "count", "title": "Fixed window", "tells": f"{LIMIT} per window of {PER} s"},
    ]
    for way, window in zip(ways, (False, True), strict=True):
        way["now"] = get_throttle().look(NAME, KEY, limit=LIMIT, per=PER, window=window)
    return {
        "limit": LIMIT, "per": PER, "ways": ways, "costs": range(1, LIMIT + 1),
        "keys": [keys.pace(NAME, KEY).run, keys.window(NAME, KEY).count],
    }  # fmt: skip


def hit(request: HttpRequest, asked: QueryDict) -> str:
    return _hit("take", asked)


def count(request: HttpRequest, asked: QueryDict) -> str:
    return _hit("count", asked)


def _hit(how: str, asked: QueryDict) -> str:
    wanted = asked.get("cost", "1")
    cost = int(wanted) if wanted.isdecimal() and len(wanted) < 4 else 0  # 0 is refused, with the words for it
    verdict = getattr(get_throttle(), how)(NAME, KEY, limit=LIMIT, per=PER, cost=cost)
    if not verdict.allowed:
        return f"Refused: retry in {max(0.1, verdict.retry_after):.1f} s for {cost}."
    return f"Allowed: {cost} used, {verdict.remaining} remaining, resets in {verdict.reset_after:.1f} s."


ACTS = {"hit": hit, "count": count}
