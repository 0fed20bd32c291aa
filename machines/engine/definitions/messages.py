"""The actions that have to do with events: ``raise``, ``send`` and ``cancel``."""

from __future__ import annotations

from .. import limits
from .durations import read_delay
from .model import Action, Sending, Value, Verb
from .naming import Check, name_of, required
from .path import quote
from .place import Place
from .values import read_expression, read_value

SEND_KEYS = ("event", "to", "data", "delay", "id", "idlocation", "type")
_HINTS = {"type": 'write "event"', "payload": 'write "data"', "target": 'write "to"', "params": 'write "data"'}


def read_raise(place: Place) -> list[Action]:
    """With a delay it is a send to the instance itself."""
    if isinstance(place.value, str):
        return _event_action(place, place, None)
    if not place.is_object("an event's name or an object", 'write {"raise": "event"}'):
        return []
    place.refuse_unknown(("event", "data", "delay", "id"), _HINTS)
    if "delay" in place or "id" in place:
        return _event_action(place, required(place, "event"), _read_sending(place))
    return _event_action(place, required(place, "event"), None)


def read_send(place: Place) -> list[Action]:
    """To another instance, to the parent, to a child, or to itself through its own queue."""
    if isinstance(place.value, str):
        return _event_action(place, place, Sending())
    if not place.is_object("an event's name or an object", 'write {"send": {"event": "name"}}'):
        return []
    place.refuse_unknown(SEND_KEYS, _HINTS)
    return _event_action(place, required(place, "event"), _read_sending(place))


def read_cancel(place: Place) -> list[Action]:
    name, computed = _text_or_expression(place, "send", limits.check_send_id)
    return [Action("cancel", place.path, name, computed=computed)] if name or computed else []


def _event_action(place: Place, event: Place | None, sending: Sending | None) -> list[Action]:
    """A raise when ``sending`` is None."""
    data = place.get("data")
    value = read_value(data) if data and not data.broken else None
    keys = tuple(data.value) if data and isinstance(data.value, dict) else ()
    name, computed = _read_event(event)
    if event is None or not (name or computed):
        return []
    verb: Verb = "raise" if sending is None else "send"
    refuse_reserved(event, name or _constant(computed), "raised" if sending is None else "sent")
    return [Action(verb, event.path, name, value=value, keys=keys, computed=computed, sending=sending)]


def refuse_reserved(place: Place, name: str, done: str) -> None:
    """Report a name that only the engine gives to events. ``done``: what the action would do with it."""
    if limits.is_reserved_event(name):
        word = name.partition(".")[2].replace(".", "_") or "name"
        message = f"the event {quote(name)} is the engine's own and cannot be {done}"
        hint = f"write a name that does not begin with done., error. or after.: {quote(word)}"
        place.report.add("SB107", place.path, message, hint, later=True)


def _constant(value: Value | None) -> str:
    """The text an expression always gives, as far as it is written out; what is computed the engine looks at."""
    return str(value.tree[1]) if value is not None and value.tree[0] == "str" else ""


def _read_event(place: Place | None) -> tuple[str, Value | None]:
    """A name, ``{"expr": ...}``, or XState's ``{"type": name}``."""
    if place is not None and "type" in place:
        place.refuse_unknown(("type",), {key: 'write it under "data"' for key in place.value if key != "type"})
        place = place.at("type")
    return _text_or_expression(place, "event", limits.check_event_name)


def _text_or_expression(place: Place | None, what: str, check: Check) -> tuple[str, Value | None]:
    if place is None or place.broken:
        return "", None
    if isinstance(place.value, dict):
        return "", read_expression(place)
    return name_of(place, what, check), None


def _read_sending(place: Place) -> Sending:
    id, computed = _text_or_expression(place.get("id"), "send", limits.check_send_id)
    location = place.get("idlocation")
    type = place.get("type")
    return Sending(
        to=_read_to(place.get("to")),
        delay=read_delay(place.get("delay")),
        id=id,
        computed=computed,
        idlocation=(location.text("a field's name") or "") if location else "",
        type=read_value(type) if type and type.text("an expression in quotes") is not None else None,
    )


def _read_to(place: Place | None) -> Value | None:
    """An expression that gives an address, or a machine and an expression that gives the id."""
    if place is None or place.broken:
        return None
    if not isinstance(place.value, dict):
        what = "an expression in quotes, or an object with machine and id"
        hint = 'write "\'#_parent\'" or {"machine": "name", "id": "expression"}'
        return None if place.text(what, hint) is None else read_value(place)
    place.refuse_unknown(("machine", "id"))
    id = required(place, "id")
    machine = name_of(required(place, "machine"), "machine", limits.check_machine_name)
    if not machine or id is None or id.text("an expression in quotes") is None:
        return None
    value = read_value(id)
    tree = ["obj", ["machine", ["str", machine]], ["id", value.tree]]
    return Value(tree, f"{machine}/{value.text}", value.parts)
