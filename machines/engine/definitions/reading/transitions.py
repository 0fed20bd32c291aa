"""Reads transitions under ``on``, ``always``, ``after``, ``onDone`` and ``onError``; ``invoke``, the jobs of handlers
and the child machines of a state; and ``queues``, the limits of a machine's queues."""

from dataclasses import replace

from machines.engine import limits, rates
from machines.engine.definitions.durations import read_after
from machines.engine.definitions.findings import quote
from machines.engine.definitions.model import Cause, Invoke, Limit, Transition, Value
from machines.engine.definitions.place import Place, list_keys, read_checked, require_key
from machines.engine.definitions.scope import Scope
from machines.engine.definitions.values import read_expression, read_guard, read_object

from .actions import WORK_HINTS, WORK_KEYS, read_actions, read_work

_HINTS = {
    "cond": 'write "guard"',
    "internal": 'write "reenter", the other way round',
    "external": 'write "reenter"',
    "in": 'write a guard: In("state")',
    "action": 'write "actions"',
}


def read_on(place: Place, scope: Scope) -> tuple[Transition, ...]:
    """Read the transitions of a state's ``on``, in document order."""
    if not place.is_object("an object of events and transitions"):
        return ()
    transitions: list[Transition] = []
    for descriptor, below in place.items():
        _check_descriptor(descriptor, below)
        transitions += read_transitions(below, "on", (descriptor,), scope)
    return tuple(transitions)


def _check_descriptor(descriptor: str, place: Place) -> None:
    if not descriptor:
        place.error("SB107", "an event's name is empty", 'transitions without an event stand under "always"')
        return
    why = None if descriptor == "*" else limits.check_event_name(descriptor.removesuffix(".*"))
    if why is not None:
        place.error("SB107", f"the event {quote(descriptor)} {why}", "patterns are * and prefix.*")


def read_after_transitions(place: Place, scope: Scope) -> tuple[Transition, ...]:
    """Read the transitions of a state's ``after``: those of one delay share the event of its timer."""
    if not place.is_object("an object of delays and transitions", 'write {"30s": "state"}'):
        return ()
    transitions: list[Transition] = []
    for text, below in place.items():
        delay = read_after(text, below)
        found = read_transitions(below, "after", (), scope)
        events = (f"after.{found[0].id}",) if found else ()
        for position, transition in enumerate(found):
            transitions.append(replace(transition, events=events, delay=None if position else delay))
    return tuple(transitions)


def read_transitions(place: Place, cause: Cause, events: tuple[str, ...], scope: Scope) -> tuple[Transition, ...]:
    """Read one transition or a list of them; a text is a target."""
    if place.broken:
        return ()
    found = (_read_transition(one, cause, events, scope) for one in place.one_or_many())
    return tuple(transition for transition in found if transition is not None)


def _read_transition(place: Place, cause: Cause, events: tuple[str, ...], scope: Scope) -> Transition | None:
    id = scope.next_id()
    if isinstance(place.value, str):
        return Transition(id, cause, events, _read_target(place, scope), None, (), False, "", place.path)
    if not place.is_object("a transition", 'write {"target": "state"} or the name of a state'):
        return None
    place.refuse_unknown(list_keys("transition"), _HINTS)
    guard = place.part("guard")
    if isinstance(guard.value, dict):
        guard.error("SB104", "expected an expression in quotes, found an object", 'write "failed < 3"')
    return Transition(
        id=id,
        cause=cause,
        events=events,
        targets=_read_target(place.part("target"), scope),
        guard=None if isinstance(guard.value, dict) else read_guard(guard),
        actions=read_actions(place.part("actions")),
        reenter=bool(place.part("reenter").flag()),
        description=place.part("description").text() or "",
        path=place.path,
        allow=_read_allow(place.part("allow"), cause),
    )


def _read_allow(place: Place, cause: Cause) -> tuple[str, ...]:
    """Read the groups of people who may send the event; empty for anyone."""
    if not place.is_array("a list of groups"):
        return ()
    if cause != "on":
        place.error(
            "SB104", f"no person sends this event: {quote('allow')} belongs to a transition under {quote('on')}"
        )
        return ()
    if not 0 < len(place.value) <= limits.MAX_GROUPS:
        place.error("SB114", f"a list of 1 to {limits.MAX_GROUPS} groups, not of {len(place.value)}")
    names = [one.text("the name of a group") for one in place.one_or_many()]
    for one, name in zip(place.one_or_many(), names, strict=True):
        if name is not None and not (name.strip() and len(name) <= limits.MAX_GROUP_NAME):
            one.error("SB107", f"a group has a name of 1 to {limits.MAX_GROUP_NAME} characters")
    return tuple(name for name in names if name)


def _read_target(place: Place, scope: Scope) -> tuple[str, ...]:
    return tuple(branch.name for branch in scope.branches(place))


MACHINE = "machine:"
_OF_WORK = ("queue", *WORK_KEYS)
_OF_MACHINES = ("autoforward", "finalize", "idlocation")
_INVOKE_HINTS = WORK_HINTS | {"onFailure": 'write "onError"', "onSuccess": 'write "onDone"'}


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
    place.refuse_unknown(list_keys("invoke"), _INVOKE_HINTS)
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
