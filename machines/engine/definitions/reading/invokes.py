"""Reads ``invoke``, the jobs of handlers and the child machines of a state, and ``queues``, the limits of a
machine's queues."""

from __future__ import annotations

from machines.engine import limits, rates
from machines.engine.definitions.findings import quote
from machines.engine.definitions.model import Invoke, Limit, Transition, Value
from machines.engine.definitions.place import Place, read_checked, require_key
from machines.engine.definitions.scope import Scope
from machines.engine.definitions.values import read_expression, read_object

from .actions import WORK_HINTS, WORK_KEYS, read_actions, read_work
from .transitions import read_transitions

MACHINE = "machine:"
_OF_WORK = ("queue", *WORK_KEYS)
_OF_MACHINES = ("autoforward", "finalize", "idlocation")
KEYS = ("src", "id", "input", "onDone", "onError", *_OF_WORK, *_OF_MACHINES, "description", "meta")
_HINTS = WORK_HINTS | {"onFailure": 'write "onError"', "onSuccess": 'write "onDone"'}


def read_invokes(place: Place, scope: Scope) -> tuple[tuple[Invoke, ...], tuple[Transition, ...]]:
    """Read the invokes of a state, and the transitions of their ``onDone`` and ``onError``."""
    if place.broken:
        return (), ()
    invokes: list[Invoke] = []
    transitions: list[Transition] = []
    several = isinstance(place.value, list) and len(place.value) > 1
    for number, one in enumerate(place.one_or_many(), start=1):
        if not one.is_object("an invoke", 'write {"src": "handler"}'):
            continue
        invoke = _read_invoke(one, make_default_id(scope.source.word, number if several else 0), scope)
        transitions += read_transitions(one.part("onDone"), "done", (f"done.invoke.{invoke.id}",), scope)
        transitions += read_transitions(one.part("onError"), "error", (f"error.invoke.{invoke.id}",), scope)
        invokes.append(invoke)
    return tuple(invokes), tuple(transitions)


def make_default_id(word: str, number: int) -> str:
    """Make the id of an invoke: the word of the state, with ``.1``, ``.2``, ... where the state has several."""
    suffix = f".{number}" if number else ""
    return word[: limits.MAX_INVOKE_ID - len(suffix)] + suffix


def _read_invoke(place: Place, default: str, scope: Scope) -> Invoke:
    place.refuse_unknown(KEYS, _HINTS)
    src = require_key(place, "src")
    if isinstance(src.value, dict) or (isinstance(src.value, str) and src.value.startswith(MACHINE)):
        return _read_machine(place, src, default, scope)
    return _read_work(place, src, default)


def _read_work(place: Place, src: Place, default: str) -> Invoke:
    for key in _OF_MACHINES:
        if key in place:
            place.at(key).error("SB119", f'"{key}" belongs to an invoke of a machine', 'write "src": "machine:name"')
    name = read_checked(src, "handler name", "a handler's name, or machine: and a machine's", limits.check_handler_name)
    queue = read_checked(place.part("queue"), "queue name", "a queue's name", limits.check_queue_name)
    return Invoke(
        id=_read_id(place) or default,
        src=name,
        queue=queue or name or "_",
        input=read_object(place.part("input"))[0],
        path=place.path,
        work=read_work(place),
    )


def _read_machine(place: Place, src: Place, default: str, scope: Scope) -> Invoke:
    for key in _OF_WORK:
        if key in place:
            place.at(key).error("SB119", f'"{key}" belongs to the work of a handler, not to a machine')
    machine, computed = _read_machine_name(src, scope)
    return Invoke(
        id=_read_id(place) or default,
        src=f"{MACHINE}{computed.text if computed else machine}",
        queue="",
        input=read_object(place.part("input"))[0],
        path=place.path,
        machine=machine,
        computed=computed,
        autoforward=bool(place.part("autoforward").flag()),
        finalize=read_actions(place.part("finalize")),
        idlocation=place.part("idlocation").text("a field's name") or "",
    )


def _read_machine_name(src: Place, scope: Scope) -> tuple[str, Value | None]:
    if isinstance(src.value, dict):
        return "", read_expression(src)
    name = scope.machine_named(str(src.value).removeprefix(MACHINE))
    if (why := limits.check_machine_name(name)) is not None:
        src.error("SB107", f"the machine name {quote(name)} {why}")
    return name, None


def _read_id(place: Place) -> str:
    return read_checked(place.part("id"), "id", "an id", limits.check_invoke_id)


_QUEUE_HINTS = {"limit": 'write "concurrency"', "max": 'write "concurrency"', "per": 'write "rate": "100/s"'}


def read_queues(place: Place) -> dict[str, Limit]:
    if not place.is_object("an object of queues", 'write {"mail": {"concurrency": 10}}'):
        return {}
    found = {}
    for name, below in place.items():
        if (why := limits.check_queue_name(name)) is not None:
            below.error("SB107", f"the queue name {quote(name)} {why}")
        elif below.is_object("an object", 'write {"concurrency": 10, "rate": "100/s"}'):
            found[name] = _read_limit(below)
    return found


def _read_limit(place: Place, further: tuple[str, ...] = ("groups",)) -> Limit:
    place.refuse_unknown(("concurrency", "rate", "description", *further), _QUEUE_HINTS)
    at_a_time = place.part("concurrency").whole(1, limits.MAX_CONCURRENCY)
    rate = place.part("rate")
    text = rate.text("a rate", rates.RATE_HINT)
    parsed = rates.QueueRate.parse(text) if text is not None else None
    if text is not None and parsed is None:
        rate.error("SB113", f"{quote(text)} is no rate", rates.RATE_HINT)
    groups = place.part("groups")
    if not further or not groups.is_object("an object", 'write {"concurrency": 2, "rate": "10/s"}'):
        return Limit(at_a_time, parsed)
    return Limit(at_a_time, parsed, _read_limit(groups, ()))
