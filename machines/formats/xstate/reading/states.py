"""Reads states at any depth, and the machine as the state around them all.

Actors become jobs of a handler of that name, or child machines for a source ``machine:...``. For XState ``onDone``
comes before ``*``, because it is the more exact; here it comes after all of ``on``. So it moves into ``on``, under the
name of its event.
"""

from dataclasses import replace
from typing import Any

from machines.engine import limits
from machines.engine.definitions.findings import quote
from machines.engine.definitions.place import Place
from machines.engine.definitions.reading.transitions import make_default_id
from machines.engine.definitions.scope import Branch
from machines.formats.text import single
from machines.formats.xstate.context import (
    DONE_INVOKE,
    DONE_STATE,
    ERROR_INVOKE,
    INVOKE_KEYS,
    STATE_KEYS,
    Reading,
    Scope,
    as_list,
    handler_name,
    one_or_many,
    unbrace,
)

from .actions import read_actions
from .transitions import describe, read_after, read_on, read_target, read_transitions
from .values import read_object, read_value

BEHAVIOUR = ("on", "always", "after", "entry", "onEntry", "exit", "onExit", "invoke", "onDone")
KNOWN = (
    *BEHAVIOUR,
    *("id", "key", "type", "initial", "states", "history", "target", "output", "data", "tags", "description", "meta"),
    *("activities", "version"),
)
_TYPES = ("atomic", "compound", "parallel", "final", "history")
_OF_INVOKE = (
    *("src", "id", "input", "data", "onDone", "onError", "onSnapshot", "meta", "description", "type", "systemId"),
    "autoForward",
)
CHILD = "machine:"


def read_states(place: Place | None, branch: Branch, reading: Reading) -> dict[str, Any]:
    if place is None or place.value is None or not place.is_object("an object of states"):
        return {}
    states = {}
    for key, below in place.items():
        if key in branch.children:
            states[key] = _read_state(below, branch.children[key], reading)
        else:
            below.error("SB111", f"states inside states more than {limits.MAX_STATE_DEPTH} levels deep")
    return states


def _read_state(place: Place, branch: Branch, reading: Reading) -> dict[str, Any]:
    if place.value is None or not place.is_object("a state", "write {} for a state without anything"):
        return {}
    reading.leave_out_unknown(place, KNOWN)
    kind = kind_of(place)
    state: dict[str, Any] = {}
    if branch.explicit:
        state["id"] = branch.explicit
    if kind:
        state["type"] = kind
    if kind == "history":
        parts = _history(place, Scope(reading, branch))
    else:
        parts = _final(place, Scope(reading, branch)) if kind == "final" else inside(place, branch, reading)
    return state | parts | reading.restore(for_people(place), STATE_KEYS)


def kind_of(place: Place) -> str:
    """Return the type of a state, if it says more than the states below it."""
    kind = place.value.get("type")
    if place.value.get("parallel") is True:
        return "parallel"
    if kind is None:
        return "history" if place.value.get("history") in ("deep", "shallow") else ""
    if kind not in _TYPES:
        place.at("type").error("SB104", f"no type of state {quote(str(kind))}", f"one of {', '.join(_TYPES)}")
    return kind if kind in ("parallel", "final", "history") else ""


def inside(place: Place, branch: Branch, reading: Reading) -> dict[str, Any]:
    """Read everything that a state does, and the states below it."""
    scope = Scope(reading, branch)
    on, always = read_on(place.get("on"), scope)
    parts: dict[str, Any] = {
        "initial": _initial(place, scope),
        "entry": read_actions(_either(place, "entry", "onEntry"), scope),
        "exit": read_actions(_either(place, "exit", "onExit"), scope),
        "invoke": read_invokes(place.get("invoke"), scope),
        "on": on,
        "onDone": read_transitions(place.get("onDone"), scope.finishing("event")),
        "after": read_after(place.get("after"), scope),
        "always": single([*always, *as_list(read_transitions(place.get("always"), scope))]),
        "states": read_states(place.get("states"), branch, reading),
    }
    if place.value.get("activities"):
        reading.cannot(place.at("activities"), "there are no activities here", 'let the state "invoke" a handler')
    if "*" in on and not reading.ours:
        parts = before_wildcard(parts, branch)
    return {key: value for key, value in parts.items() if value not in (None, [], {})}


def for_people(place: Place) -> dict[str, Any]:
    kept = {key: place.value.get(key) for key in ("tags", "description", "meta")}
    return {key: value for key, value in kept.items() if value not in (None, [], {}, "")}


def _either(place: Place, *keys: str) -> Place | None:
    return next((place.at(key) for key in keys if key in place), None)


def _initial(place: Place, scope: Scope) -> Any:
    """Read the initial state: a name, or a target with actions. A parallel state always enters all of its regions."""
    found = place.get("initial")
    if found is None or found.value is None:
        return None
    if kind_of(place) == "parallel":
        scope.reading.leave_out(found.path, "a parallel state enters all of its regions")
        return None
    if not isinstance(found.value, dict):
        return found.value
    named = found.get("target")
    target = single([read_target(one, scope) for one in named.one_or_many()] if named else [])
    actions = read_actions(found.get("actions"), scope)
    return {"target": target, "actions": actions} if actions else target


def _history(place: Place, scope: Scope) -> dict[str, Any]:
    kind = place.value.get("history")
    parts: dict[str, Any] = {"history": kind} if kind in ("deep", "shallow") else {}
    if place.value.get("target") is not None:
        parts["target"] = single([read_target(one, scope) for one in place.at("target").one_or_many()])
    _leave_out(place, BEHAVIOUR, "a history state is never active", scope)
    return parts


def _final(place: Place, scope: Scope) -> dict[str, Any]:
    """Read a final state. XState 4 calls its output ``data``."""
    output = _either(place, "output", "data")
    entry = read_actions(_either(place, "entry", "onEntry"), scope)
    exit = read_actions(_either(place, "exit", "onExit"), scope)
    _leave_out(place, ("on", "always", "after", "invoke", "onDone", "states"), "a final state has no way out", scope)
    parts: dict[str, Any] = {"entry": entry, "exit": exit}
    if output is not None:
        parts["output"] = read_value(output, scope)
    return {key: value for key, value in parts.items() if value not in ([], None)}


def _leave_out(place: Place, keys: tuple[str, ...], why: str, scope: Scope) -> None:
    for key in keys:
        if place.value.get(key) not in (None, [], {}):
            scope.reading.leave_out(place.below(key), f"{why}, so {quote(key)} means nothing there")


def read_invokes(place: Place | None, scope: Scope) -> Any:
    """Read one invoke or a list of them; return None where there is none."""
    if place is None or place.value in (None, []):
        return None
    found = [_read_invoke(one, scope) for one in place.one_or_many() if one.is_object("an invoke", "name its src")]
    return single(found)


def _read_invoke(place: Place, scope: Scope) -> dict[str, Any]:
    _check(place, scope)
    invoke: dict[str, Any] = {"src": _source(place, scope)}
    if isinstance(place.value.get("id"), str) and place.value["id"]:
        invoke["id"] = place.value["id"]
    given = place.get("input") or place.get("data")
    if given is not None and given.value is not None:
        invoke["input"] = read_object(given, scope, "input")
    if place.value.get("autoForward") is True:
        invoke["autoforward"] = True
    output = "event" if invoke["src"].startswith(CHILD) else "event.result"
    for key, inner in (("onDone", scope.finishing(output)), ("onError", replace(scope, failing=True))):
        if place.value.get(key) not in (None, []):
            invoke[key] = read_transitions(place.at(key), inner)
    return invoke | scope.reading.restore(describe(place), (*INVOKE_KEYS, "src"))


def _check(place: Place, scope: Scope) -> None:
    scope.reading.leave_out_unknown(place, _OF_INVOKE)
    if place.value.get("onSnapshot") is not None:
        hint = "let the handler's work end, or the child send an event"
        scope.reading.cannot(place.at("onSnapshot"), "a job and a child machine have no snapshots to listen to", hint)
    if place.value.get("systemId"):
        scope.reading.leave_out(place.below("systemId"), "actors have no system ids here")


def _source(place: Place, scope: Scope) -> str:
    found = place.get("src")
    if found is not None and isinstance(found.value, dict) and isinstance(found.value.get("type"), str):
        found = found.at("type")
    name = found.text("the name of an actor") if found else None
    if found is None or name is None:
        if found is None:
            place.report.add("SB106", place.below("src"), '"src" is missing', "name the handler that does the work")
        return "unknown"
    code = unbrace(name)
    if code is not None and code.isidentifier():
        name = code
    elif code is not None:
        name, message = scope.state.name, "the actor is code; its handler has the name of the state"
        found.report.add("SB223", found.path, message, "give it a name of its own")
    if name.startswith(CHILD):
        return CHILD + handler_name(name.removeprefix(CHILD), found.path, scope.reading)
    return handler_name(name, found.path, scope.reading)


def before_wildcard(parts: dict[str, Any], branch: Branch) -> dict[str, Any]:
    """Return the parts of a state such that ``*`` takes no event that another part of the state handles."""
    found: dict[str, Any] = {}
    if parts["onDone"] not in (None, []):
        found[DONE_STATE + branch.word] = parts["onDone"]
    invokes = one_or_many(parts["invoke"]) if parts["invoke"] else []
    kept = []
    for number, invoke in enumerate(invokes, start=1):
        id = invoke.get("id") or make_default_id(branch.name, number if len(invokes) > 1 else 0)
        for key, event in (("onDone", DONE_INVOKE + id), ("onError", ERROR_INVOKE + id)):
            if key in invoke:
                found[event] = invoke[key]
        kept.append({key: value for key, value in invoke.items() if key not in ("onDone", "onError")})
    on = {event: transitions for event, transitions in parts["on"].items() if event != "*"}
    on |= {event: transitions for event, transitions in found.items() if event not in on}
    on["*"] = parts["on"]["*"]
    return parts | {"on": on, "invoke": single(kept), "onDone": None}
