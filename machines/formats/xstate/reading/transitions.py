"""The keys of ``on``: XState prefers the exact name to a pattern, here the first in the document is tried first.

Transitions, wherever they stand.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from machines.engine.definitions.findings import quote
from machines.engine.definitions.place import Place
from machines.formats.text import single
from machines.formats.xstate.context import (
    DONE_INVOKE,
    DONE_STATE,
    ERROR_INVOKE,
    TRANSITION_KEYS,
    Scope,
    as_list,
    covering,
    descriptor,
    is_around,
)

from .actions import delay_expression, read_actions, read_fixed_delay
from .values import read_guard, read_value, state_in

KNOWN = (
    *("target", "guard", "cond", "in", "actions", "context", "reenter", "internal", "description", "meta"),
    *("order", "delay"),
)
Transition = str | dict[str, Any]


def in_order(place: Place, scope: Scope) -> list[tuple[str, Place]]:
    """Return the descriptors in our terms: exact names before the patterns that match them."""
    found = [(descriptor(event, below.path, scope.reading) if event else "", below) for event, below in place.items()]
    if scope.reading.ours:
        return found
    if _comes_late(event for event, _ in found):
        found = sorted(found, key=lambda pair: (pair[0] == "*", -len(pair[0].split(".")), pair[0].endswith(".*")))
    _check(found, scope)
    return found


def scope_of(event: str, scope: Scope) -> Scope:
    """Return the scope for a transition's event: some events have an output, some an error."""
    if event.startswith(DONE_INVOKE):
        return scope.finishing("event.result")
    if event.startswith(DONE_STATE):
        return scope.finishing("event")
    return replace(scope, failing=event.startswith(ERROR_INVOKE))


def _comes_late(events: Iterable[str]) -> bool:
    """Return whether an event comes after a descriptor that also matches it."""
    seen: set[str] = set()
    for event in events:
        if event != "*" and any(one in seen for one in covering(event)):
            return True
        seen.add(event)
    return False


def _check(found: list[tuple[str, Place]], scope: Scope) -> None:
    """Report names that also match longer ones that begin with the name and a dot. XState does not do that."""
    here = dict(found)
    for event, place in found:
        if not event or event.endswith("*") or event.startswith((DONE_INVOKE, ERROR_INVOKE)):
            continue
        longer = scope.reading.longer.get(event, ())
        left = next((name for name in longer if name not in here or not _is_always_taken(here[name])), None)
        if left is not None:
            message = f"here the event {quote(event)} also takes {quote(left)}, as in SCXML"
            hint = f"where that matters, add the guard trigger.name == {event!r}"
            scope.reading.report.add("SB224", place.path, message, hint)
        if any(one in here for one in covering(event) if one.endswith("*")) and not _is_always_taken(place):
            message = f"when no guard of {quote(event)} holds, the pattern beside it is tried; XState does not"
            scope.reading.report.add("SB224", place.path, message, "add a transition without a guard at the end")


def _is_always_taken(place: Place) -> bool:
    last = place.value[-1] if isinstance(place.value, list) and place.value else place.value
    return not (isinstance(last, dict) and any(last.get(key) is not None for key in ("guard", "cond", "in")))


def read_on(place: Place | None, scope: Scope) -> tuple[dict[str, Any], list[Any]]:
    """Read ``on``, and the eventless transitions that XState 4 keeps under the empty event."""
    if place is None or not place.is_object("an object of events and transitions"):
        return {}, []
    on: dict[str, Any] = {}
    always: list[Any] = []
    for event, below in in_order(place, scope):
        found = read_transitions(below, scope_of(event, scope))
        if event:
            on[event] = [*as_list(on[event]), *as_list(found)] if event in on else found
        else:
            always += as_list(found)
    return on, always


def read_transitions(place: Place | None, scope: Scope) -> Any:
    """Read one transition or a list, in the order in which they are tried; return None where there is none."""
    if place is None:
        return None
    if place.value is None:
        return {}  # a forbidden transition: the event is taken and nothing happens
    if not isinstance(place.value, list):
        return _read_transition(place, scope)
    ordered = sorted(place.one_or_many(), key=_order)
    return [_read_transition(one, scope) for one in ordered]


def read_after(place: Place | None, scope: Scope) -> dict[str, Any]:
    """Read delayed transitions: an object, or the list that XState 4 allows."""
    if place is None or place.value is None:
        return {}
    after: dict[str, Any] = {}
    if isinstance(place.value, list):
        pairs = [(one.get("delay"), one) for one in place.one_or_many()]
    elif place.is_object("an object of delays and transitions"):
        pairs = [(Place(key, below.path, place.report), below) for key, below in place.items()]
    else:
        return {}
    for delay, below in pairs:
        key = _delay_key(delay or below, scope)
        found = read_transitions(below, scope)
        after[key] = [*as_list(after[key]), *as_list(found)] if key in after else found
    return after


def _delay_key(place: Place, scope: Scope) -> str:
    if isinstance(place.value, int | float):
        return str(place.value)
    text = place.value if isinstance(place.value, str) else ""
    fixed = read_fixed_delay(text)
    return str(fixed) if fixed is not None else delay_expression(place, text, scope)


def _order(place: Place) -> float:
    order = place.value.get("order") if isinstance(place.value, dict) else None
    return order if isinstance(order, int | float) else 0


def _read_transition(place: Place, scope: Scope) -> Transition:
    if isinstance(place.value, str):
        target, reenter = _target(place, None, scope)
        return {"target": target, "reenter": True} if reenter else target
    if not place.is_object("a transition", 'write {"target": "state"} or the name of a state'):
        return {}
    scope.reading.leave_out_unknown(place, KNOWN)
    transition: dict[str, Any] = {}
    if place.value.get("target") not in (None, []):
        transition["target"], reenter = _target(place.at("target"), place.value.get("internal"), scope)
        transition |= {"reenter": True} if reenter else {}
    if place.value.get("reenter") is True:
        transition["reenter"] = True
    guard = _guard(place, scope)
    if guard is not None:
        transition["guard"] = guard
    actions = _read_assignment(place.get("context"), scope) + read_actions(place.get("actions"), scope)
    if actions:
        transition["actions"] = single(actions)
    return transition | scope.reading.restore(_for_people(place, guard), TRANSITION_KEYS)


def _guard(place: Place, scope: Scope) -> str | bool | None:
    """Read ``guard``, and XState 4's ``cond`` and ``in``, which must hold as well."""
    found = place.get("guard") or place.get("cond")
    guard = read_guard(found, scope) if found is not None and found.value is not None else None
    if (within := place.get("in")) is None:
        return guard
    state = state_in(within, scope)
    return state if guard in (None, True) else f"({guard}) and {state}"


def _read_assignment(place: Place | None, scope: Scope) -> list[dict[str, Any]]:
    """Read Stately's short form of an assignment: ``context`` on a transition."""
    if place is None or not place.is_object("an object of fields and values"):
        return []
    values = {scope.reading.field(name, value): read_value(value, scope) for name, value in place.items()}
    return [{"set": values}] if values else []


def describe(place: Place) -> dict[str, Any]:
    return {key: place.value[key] for key in ("description", "meta") if place.value.get(key) not in (None, {})}


def _for_people(place: Place, guard: str | bool | None) -> dict[str, Any]:
    """Return the description and ``meta``. The parameters of a guard without an expression are added to ``meta``."""
    kept = describe(place)
    named = place.value.get("guard") or place.value.get("cond")
    if isinstance(named, dict) and named.get("params") and named.get("type") == guard:
        meta = kept.get("meta") if isinstance(kept.get("meta"), dict) else {}
        kept["meta"] = {**meta, "xstate": {"guard": named}}
    return kept


def _target(place: Place, internal: object, scope: Scope) -> tuple[Any, bool]:
    """Return the target in our form, and whether XState 4 would leave and re-enter the source."""
    places = place.one_or_many()
    targets = [read_target(one, scope) for one in places]
    reenter = scope.reading.four and any(_enters_again(one, internal, scope) for one in places)
    return single(targets), reenter


def read_target(place: Place, scope: Scope) -> str:
    """Return one target in our form."""
    text = place.text("the name of a state")
    if text is None:
        return ""
    found = scope.reading.states.resolve(scope.state, text)
    plain = not text.startswith("#") and "\\" not in text
    return text if found is None or plain else scope.reading.absolute(found)


def _enters_again(place: Place, internal: object, scope: Scope) -> bool:
    """Return whether a target re-enters the source.

    In version 4 a transition is external unless it is marked internal, or its target begins with a dot.
    """
    text = place.value if isinstance(place.value, str) else ""
    found = scope.reading.states.resolve(scope.state, text)
    inside = scope.state.parent is not None and is_around(scope.state, found)
    return inside and not (internal if isinstance(internal, bool) else text.startswith("."))
