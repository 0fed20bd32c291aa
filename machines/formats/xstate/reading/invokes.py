"""Reads ``invoke``: actors become jobs of a handler of that name, or child machines for a source ``machine:...``.

For XState ``onDone`` comes before ``*``, because it is the more exact; here it comes after all of ``on``. So it moves
into ``on``, under the name of its event.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from machines.engine.definitions.place import Place
from machines.engine.definitions.reading.invokes import make_default_id
from machines.engine.definitions.scope import Branch
from machines.formats.xstate.context import Scope
from machines.formats.xstate.dialect import DONE_INVOKE, DONE_STATE, ERROR_INVOKE, INVOKE_KEYS, OURS, unbrace
from machines.formats.xstate.names import handler_name

from .transitions import read_transitions
from .values import read_object

KNOWN = ("src", "id", "input", "data", "onDone", "onError", "onSnapshot", "meta", "description", "type", "systemId")
CHILD = "machine:"


def read_invokes(place: Place | None, scope: Scope) -> Any:
    """Read one invoke or a list of them; return None where there is none."""
    if place is None or place.value in (None, []):
        return None
    found = [_read_invoke(one, scope) for one in place.one_or_many() if one.is_object("an invoke", "name its src")]
    return found[0] if len(found) == 1 else found


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
    return invoke | _read_kept(place, scope)


def _check(place: Place, scope: Scope) -> None:
    scope.reading.leave_out_unknown(place, (*KNOWN, "autoForward"))
    if place.value.get("onSnapshot") is not None:
        hint = "let the handler's work end, or the child send an event"
        scope.reading.cannot(place.at("onSnapshot"), "a job and a child machine have no snapshots to listen to", hint)
    if place.value.get("systemId"):
        scope.reading.left_out(place.below("systemId"), "actors have no system ids here")


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
    if code is not None:
        name = code if code.isidentifier() else _named_by_state(found, scope)
    if name.startswith(CHILD):
        return CHILD + handler_name(name.removeprefix(CHILD), found.path, scope.reading)
    return handler_name(name, found.path, scope.reading)


def _named_by_state(place: Place, scope: Scope) -> str:
    message = "the actor is code; its handler has the name of the state"
    place.report.add("SB223", place.path, message, "give it a name of its own")
    return scope.state.name


def _read_kept(place: Place, scope: Scope) -> dict[str, Any]:
    """Return the description and ``meta``, and what the writer stored below ``meta`` for lack of another place."""
    kept = {key: place.value[key] for key in ("description", "meta") if place.value.get(key) not in (None, {})}
    meta = kept.get("meta")
    if not scope.reading.ours or not isinstance(meta, dict) or not isinstance(meta.get(OURS), dict):
        return kept
    others = {key: value for key, value in meta.items() if key != OURS}
    kept = {key: value for key, value in kept.items() if key != "meta"} | ({"meta": others} if others else {})
    return kept | {key: meta[OURS][key] for key in (*INVOKE_KEYS, "src") if key in meta[OURS]}


def before_wildcard(parts: dict[str, Any], branch: Branch) -> dict[str, Any]:
    """Return the parts of a state such that ``*`` takes no event that another part of the state handles."""
    found: dict[str, Any] = {}
    if parts["onDone"] not in (None, []):
        found[DONE_STATE + branch.word] = parts["onDone"]
    invokes = parts["invoke"] if isinstance(parts["invoke"], list) else [parts["invoke"]] if parts["invoke"] else []
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
    invoke = kept[0] if len(kept) == 1 else kept
    return parts | {"on": on, "invoke": invoke, "onDone": None}
