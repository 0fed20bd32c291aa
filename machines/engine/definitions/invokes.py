"""``invoke``: the work a state asks a worker to do while it is active."""

from __future__ import annotations

import re

from .. import limits
from .durations import read_duration
from .model import Invoke, Transition
from .path import quote
from .place import Place
from .scope import Scope
from .transitions import read_transitions
from .values import read_object

KEYS = ("src", "id", "queue", "input", "onDone", "onError", "retry", "timeout", "description", "meta")
_HINTS = {
    "data": 'write "input"',
    "onFailure": 'write "onError"',
    "onSuccess": 'write "onDone"',
    "lease": 'write "timeout"',
}


def read_invokes(place: Place | None, state: str, scope: Scope) -> tuple[tuple[Invoke, ...], tuple[Transition, ...]]:
    """The invokes of a state, and the transitions of their ``onDone`` and ``onError``."""
    if place is None or place.broken:
        return (), ()
    invokes: list[Invoke] = []
    transitions: list[Transition] = []
    several = isinstance(place.value, list) and len(place.value) > 1
    for number, one in enumerate(place.one_or_many(), start=1):
        if not one.is_object("an invoke", 'write {"src": "handler"}'):
            continue
        invoke = _read_invoke(one, default_id(state, number if several else 0))
        transitions += read_transitions(one.get("onDone"), "done", (f"done.invoke.{invoke.id}",), scope)
        transitions += read_transitions(one.get("onError"), "error", (f"error.invoke.{invoke.id}",), scope)
        invokes.append(invoke)
    return tuple(invokes), tuple(transitions)


def default_id(state: str, number: int) -> str:
    """The state's name, made fit for an event's name; ``.1``, ``.2``, ... where a state has several."""
    suffix = f".{number}" if number else ""
    word = re.sub(r"[\s*\x00-\x1f\x7f-\x9f]+", "_", state)[: limits.MAX_INVOKE_ID - len(suffix)]
    return (word or "_") + suffix


def _read_invoke(place: Place, default: str) -> Invoke:
    place.refuse_unknown(KEYS, _HINTS)
    src = _read_src(place)
    attempts, backoff = _read_retry(place.get("retry"))
    return Invoke(
        id=_read_id(place.get("id")) or default,
        src=src,
        queue=_read_queue(place.get("queue")) or src,
        input=read_object(place.get("input"))[0],
        attempts=attempts,
        backoff=backoff,
        lease=read_duration(place.get("timeout"), limits.DEFAULT_LEASE, limits.MIN_LEASE, limits.MAX_LEASE),
        path=place.path,
    )


def _read_src(place: Place) -> str:
    src = place.get("src")
    if src is None:
        place.report.add("SB106", place.below("src"), '"src" is missing', "name the handler that does the work")
        return ""
    name = src.text("a handler's name")
    if name is None:
        return ""
    if name.startswith("machine:"):
        src.error("SB108", "invoking another machine is not yet available")
    elif (why := limits.check_handler_name(name)) is not None:
        src.error("SB107", f"the handler name {quote(name)} {why}")
    return name


def _read_id(place: Place | None) -> str:
    id = place.text("an id") if place else None
    if place is None or id is None:
        return ""
    if (why := limits.check_invoke_id(id)) is not None:
        place.error("SB107", f"the id {quote(id)} {why}")
    return id


def _read_queue(place: Place | None) -> str:
    queue = place.text("a queue's name") if place else None
    if place is None or queue is None:
        return ""
    if (why := limits.check_queue_name(queue)) is not None:
        place.error("SB107", f"the queue name {quote(queue)} {why}")
    return queue


def _read_retry(place: Place | None) -> tuple[int, int]:
    """Attempts, and ms before the second one."""
    if place is None or not place.is_object("an object", 'write {"attempts": 3, "backoff": "1s"}'):
        return limits.DEFAULT_ATTEMPTS, limits.DEFAULT_BACKOFF
    place.refuse_unknown(("attempts", "backoff"), {"delay": 'write "backoff"', "max": 'write "attempts"'})
    attempts = place.get("attempts")
    count = attempts.whole(1, limits.MAX_ATTEMPTS) if attempts else None
    backoff = read_duration(place.get("backoff"), limits.DEFAULT_BACKOFF, 0, limits.MAX_BACKOFF)
    return count or limits.DEFAULT_ATTEMPTS, backoff
