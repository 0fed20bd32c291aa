"""Actions: objects with one verb each, or XState's ``{"type": verb, "params": ...}``."""

from __future__ import annotations

from collections.abc import Callable

from .. import limits
from .model import Action
from .path import quote
from .place import Place
from .values import read_object, read_value

_NOT_YET = ("send", "sendTo", "sendParent", "cancel", "spawn", "spawnChild", "stop", "stopChild", "forwardTo")
_SYNONYMS = {
    "assign": "set",
    "delete": "unset",
    "push": "append",
    "fire": "raise",
    "queue": "enqueue",
    "job": "enqueue",
}
_SPELLING = 'write {"set": {"field": "expression"}} or another verb'


def read_actions(place: Place | None) -> tuple[Action, ...]:
    """One action or a list of them."""
    if place is None or place.broken:
        return ()
    return tuple(action for one in place.one_or_many() for action in _read_action(one))


def _read_action(place: Place) -> list[Action]:
    if isinstance(place.value, str):
        place.error("SB116", f"the action {quote(place.value)} is only a name", _SPELLING)
        return []
    if not place.is_object("an action", _SPELLING):
        return []
    if "type" in place:
        return _read_typed(place)
    if len(place.value) != 1:
        found = ", ".join(quote(verb) for verb in list(place.value)[:5]) or "none"
        place.error("SB116", f"an action has exactly one verb; here: {found}", "write a list of actions, one verb each")
        return []
    ((verb, argument),) = place.items()
    return _read_verb(verb, argument)


def _read_typed(place: Place) -> list[Action]:
    verb = place.at("type").text("the name of a verb")
    place.refuse_unknown(("type", "params"))
    if verb is None:
        return []
    if "params" not in place:
        place.report.add("SB106", place.below("params"), f'the action "{verb}" has no params', _SPELLING)
        return []
    return _read_verb(verb, place.at("params"), place.at("type"))


def _read_verb(verb: str, argument: Place, named: Place | None = None) -> list[Action]:
    """``named`` is where the verb itself stands, when that is not the argument's key."""
    place = named or argument
    if verb in _NOT_YET:
        place.error("SB108", f'the action "{verb}" is not yet available')
        return []
    if verb not in VERBS:
        known = " ".join(VERBS)
        hint = f'write "{_SYNONYMS[verb]}"' if verb in _SYNONYMS else ""
        hint = hint or place.report.suggestions.hint(verb, VERBS) or f"the verbs are: {known}"
        place.error("SB116", f"no action {quote(verb)}", hint)
        return []
    return [] if argument.broken else VERBS[verb](argument)


def _set(place: Place) -> list[Action]:
    if not place.is_object("an object of fields and values", _SPELLING):
        return []
    return [Action("set", value.path, name, value=read_value(value)) for name, value in place.items()]


def _append(place: Place) -> list[Action]:
    if not place.is_object("an object of fields and values", 'write {"append": {"field": "expression"}}'):
        return []
    return [Action("append", value.path, name, value=read_value(value)) for name, value in place.items()]


def _unset(place: Place) -> list[Action]:
    fields = []
    for one in place.one_or_many():
        name = one.text("a field's name", 'write {"unset": "field"}')
        if name is not None:
            fields.append(Action("unset", one.path, name))
    return fields


def _raise(place: Place) -> list[Action]:
    if isinstance(place.value, str):
        return _raise_event(place, None)
    if not place.is_object("an event's name or an object", 'write {"raise": "event"}'):
        return []
    place.refuse_unknown(("event", "data"), {"type": 'write "event"', "payload": 'write "data"'})
    event = _required(place, "event")
    return _raise_event(event, place.get("data")) if event else []


def _raise_event(event: Place, data: Place | None) -> list[Action]:
    value, keys = read_object(data)
    name = _name(event, "event", limits.check_event_name)
    if not name:
        return []
    if name.startswith(("done.invoke.", "error.invoke.")):
        event.error("SB107", f"the event {quote(name)} is the engine's own and cannot be raised")
    return [Action("raise", event.path, name, value=value, keys=keys)]


def _enqueue(place: Place) -> list[Action]:
    if not place.is_object("an object with src", 'write {"enqueue": {"src": "handler"}}'):
        return []
    place.refuse_unknown(("src", "queue", "input"), {"data": 'write "input"', "handler": 'write "src"'})
    src = _name(_required(place, "src"), "handler", limits.check_handler_name)
    queue = _name(place.get("queue"), "queue", limits.check_queue_name)
    value, keys = read_object(place.get("input"))
    return [Action("enqueue", place.path, queue or src, src, value, keys)] if src else []


def _emit(place: Place) -> list[Action]:
    if not place.is_object("an object with type", 'write {"emit": {"type": "name"}}'):
        return []
    place.refuse_unknown(("type", "data"), {"event": 'write "type"', "payload": 'write "data"'})
    name = _name(_required(place, "type"), "message type", limits.check_event_name)
    value, keys = read_object(place.get("data"))
    return [Action("emit", place.path, name, value=value, keys=keys)] if name else []


def _log(place: Place) -> list[Action]:
    return [Action("log", place.path, value=read_value(place))]


VERBS: dict[str, Callable[[Place], list[Action]]] = {
    "set": _set,
    "unset": _unset,
    "append": _append,
    "raise": _raise,
    "enqueue": _enqueue,
    "emit": _emit,
    "log": _log,
}


def _required(place: Place, key: str) -> Place | None:
    found = place.get(key)
    if found is None:
        place.report.add("SB106", place.below(key), f'"{key}" is missing')
    return found


def _name(place: Place | None, what: str, check: Callable[[object], str | None]) -> str:
    """A checked name, or nothing."""
    text = place.text(f"the {what}'s name") if place else None
    if place is None or text is None:
        return ""
    why = check(text)
    if why is not None:
        place.error("SB107", f"the {what} name {quote(text)} {why}")
        return ""
    return text
