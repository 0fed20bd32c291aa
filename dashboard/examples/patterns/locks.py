"""The lock on the Patterns page: two people at one button, for twenty seconds each time."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, QueryDict

from machines.connections import get_engine, get_pattern
from machines.engine import BadInput
from machines.engine.pattern_keys import PatternKeys
from machines.patterns import HeldLock, Locks, Lost, Taken
from machines.patterns.locks import CLOCK

TITLE = "Locks"
TELLS = "Locks with an expiry and a fence that detects late owners."
MAKE = Locks

NAME, TTL = "demo.lever", 20.0  # seconds
PEOPLE = ("Ann", "Ben")
SESSION = "patterns_locks"


def example(locks: Locks) -> None:
    with locks.lock("demo.example", ttl=30, owner="nightly report") as held:
        assert locks.peek("demo.example").owner == "nightly report"
        held.renew()
        try:
            locks.lock("demo.example").acquire()
        except Taken as taken:
            wait = taken.retry_after  # seconds
        assert 0 < wait <= 30
    with locks.lock("demo.example") as following:
        assert following.fence > held.fence


def show(request: HttpRequest) -> dict[str, Any]:
    keys, holder = PatternKeys(get_engine().keys.prefix).lock(NAME), get_pattern(Locks).peek(NAME)
    own = request.session.get(SESSION, {})
    people = [(name, holder is not None and holder.owner == _owner(request, name) and name in own) for name in PEOPLE]
    return {"holder": holder, "people": people, "ttl": int(TTL), "keys": [keys.holder, keys.last]}


def take(request: HttpRequest, asked: QueryDict) -> str:
    name = _person(asked)
    held = get_pattern(Locks).lock(NAME, ttl=TTL, owner=_owner(request, name)).acquire()
    request.session[SESSION] = request.session.get(SESSION, {}) | {name: [held.token, held.fence]}
    return f"{name} acquired the lock, fence {held.fence}, for {TTL:.0f} s"


def renew(request: HttpRequest, asked: QueryDict) -> str:
    _held(request, _person(asked)).renew()
    return f"{_person(asked)} renewed the lock for {TTL:.0f} s, same fence"


def release(request: HttpRequest, asked: QueryDict) -> str:
    name = _person(asked)
    if not _held(request, name).release():
        return f"{name} no longer owned the lock: nothing was released"
    return f"{name} released the lock"


def _held(request: HttpRequest, name: str) -> HeldLock:
    """As this person took it, whatever became of it since."""
    token, fence = request.session.get(SESSION, {}).get(name, ("", 0))
    if not token:
        raise Lost(f"{name} does not own the lock")
    return HeldLock(get_pattern(Locks), NAME, _owner(request, name), token, fence, int(TTL * 1000), CLOCK())


def _person(asked: QueryDict) -> str:
    name = asked.get("who", "")
    if name not in PEOPLE:
        raise BadInput(f"the owner is {' or '.join(PEOPLE)}, not {name!r:.40}", code="SB401")
    return name


def _owner(request: HttpRequest, name: str) -> str:
    return f"{name}, played by {request.user.get_username()}"[:150]


ACTS = {"take": take, "renew": renew, "release": release}
