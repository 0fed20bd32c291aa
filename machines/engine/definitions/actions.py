"""Actions: objects with one verb each, or XState's ``{"type": verb, "params": ...}``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .. import limits
from .control import ReadActions, read_block, read_foreach, read_if
from .messages import read_cancel, read_raise, read_send, refuse_reserved
from .model import Action
from .naming import name_of, required
from .path import quote
from .place import Place
from .values import read_object, read_value
from .work import HINTS, read_work
from .work import KEYS as WORK_KEYS

_NOT_YET = ("spawn", "spawnChild", "stop", "stopChild")
_SYNONYMS = {
    "sendTo": "send",
    "sendParent": "send",
    "forwardTo": "send",
    "choose": "if",
    "pure": "if",
    "assign": "set",
    "delete": "unset",
    "push": "append",
    "fire": "raise",
    "queue": "enqueue",
    "job": "enqueue",
}
_SPELLING = 'write {"set": {"field": "expression"}} or another verb'


def read_actions(place: Place | None, depth: int = 0) -> tuple[Action, ...]:
    """One action or a list of them. ``depth``: how many actions they stand in."""
    if place is None or place.broken:
        return ()
    if depth > limits.MAX_ACTION_DEPTH:
        place.error("SB111", f"actions inside actions more than {limits.MAX_ACTION_DEPTH} levels deep")
        return ()
    return tuple(action for one in place.one_or_many() for action in _read_action(one, depth))


def _read_action(place: Place, depth: int) -> list[Action]:
    if isinstance(place.value, str):
        place.error("SB116", f"the action {quote(place.value)} is only a name", _SPELLING)
        return []
    if not place.is_object("an action", _SPELLING):
        return []
    if "type" in place:
        return _read_typed(place, depth)
    if len(place.value) != 1:
        found = ", ".join(quote(verb) for verb in list(place.value)[:5]) or "none"
        place.error("SB116", f"an action has exactly one verb; here: {found}", "write a list of actions, one verb each")
        return []
    ((verb, argument),) = place.items()
    return _read_verb(verb, argument, depth)


def _read_typed(place: Place, depth: int) -> list[Action]:
    verb = place.at("type").text("the name of a verb")
    place.refuse_unknown(("type", "params"))
    if verb is None:
        return []
    if "params" not in place:
        place.report.add("SB106", place.below("params"), f'the action "{verb}" has no params', _SPELLING)
        return []
    return _read_verb(verb, place.at("params"), depth, place.at("type"))


def _read_verb(verb: str, argument: Place, depth: int, named: Place | None = None) -> list[Action]:
    """``named`` is where the verb itself stands, when that is not the argument's key."""
    place = named or argument
    if verb in _NOT_YET:
        hint = 'a state starts and ends a child: "invoke": {"src": "machine:name"}'
        place.error("SB108", f'the action "{verb}" is not yet available', hint)
        return []
    if verb not in VERBS:
        known = " ".join(VERBS)
        hint = f'write "{_SYNONYMS[verb]}"' if verb in _SYNONYMS else ""
        hint = hint or place.report.suggestions.hint(verb, VERBS) or f"the verbs are: {known}"
        place.error("SB116", f"no action {quote(verb)}", hint)
        return []
    if argument.broken:
        return []
    if verb in _HOLDERS:
        return _HOLDERS[verb](argument, partial(read_actions, depth=depth + 1))
    return _PLAIN[verb](argument)


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


def _enqueue(place: Place) -> list[Action]:
    if not place.is_object("an object with src", 'write {"enqueue": {"src": "handler"}}'):
        return []
    place.refuse_unknown(("src", "queue", "input", *WORK_KEYS), HINTS | {"handler": 'write "src"'})
    src = name_of(required(place, "src"), "handler", limits.check_handler_name)
    queue = name_of(place.get("queue"), "queue", limits.check_queue_name)
    value, keys = read_object(place.get("input"))
    work = read_work(place)
    return [Action("enqueue", place.path, queue or src, src, value, keys, work=work)] if src else []


def _emit(place: Place) -> list[Action]:
    if not place.is_object("an object with type", 'write {"emit": {"type": "name"}}'):
        return []
    place.refuse_unknown(("type", "data"), {"event": 'write "type"', "payload": 'write "data"'})
    name = name_of(required(place, "type"), "message type", limits.check_event_name)
    refuse_reserved(place.at("type") if "type" in place else place, name, "emitted")
    value, keys = read_object(place.get("data"))
    return [Action("emit", place.path, name, value=value, keys=keys)] if name else []


def _log(place: Place) -> list[Action]:
    return [Action("log", place.path, value=read_value(place))]


_PLAIN: dict[str, Callable[[Place], list[Action]]] = {
    "set": _set,
    "unset": _unset,
    "append": _append,
    "raise": read_raise,
    "send": read_send,
    "cancel": read_cancel,
    "enqueue": _enqueue,
    "emit": _emit,
    "log": _log,
}
_HOLDERS: dict[str, Callable[[Place, ReadActions], list[Action]]] = {
    "if": read_if,
    "foreach": read_foreach,
    "block": read_block,
}
VERBS = (*_PLAIN, *_HOLDERS)
