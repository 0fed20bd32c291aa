"""Reads actions. XState's own have an equivalent here or a finding; a mere name becomes a message of that name."""

import re
from collections.abc import Callable
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from machines.engine.definitions.durations import parse_duration
from machines.engine.definitions.findings import quote
from machines.engine.definitions.place import Place
from machines.engine.expressions import read as parse_expression
from machines.formats.javascript import array_methods
from machines.formats.xstate import expressions
from machines.formats.xstate.context import VERBS, Scope, event_to_send, fields_read, unbrace

from .values import literal, read_expression, read_guard, read_object, read_params, read_value

Action = dict[str, Any]
_INSTEAD = {
    **dict.fromkeys(("spawnChild", "spawn"), 'let a state "invoke" it'),
    **dict.fromkeys(("stopChild", "stop"), "an invoke ends when its state is left"),
    **dict.fromkeys(
        ("enqueueActions", "pure"), 'write the actions out, with {"if": [...]} where they depend on something'
    ),
    "escalate": 'raise an error event of your own, or send one to "#_parent"',
}
_ISO = re.compile(
    r"P(?=.)(?:(?P<w>\d+(?:\.\d+)?)W)?(?:(?P<d>\d+(?:\.\d+)?)D)?"
    r"(?:T(?=.)(?:(?P<h>\d+(?:\.\d+)?)H)?(?:(?P<m>\d+(?:\.\d+)?)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?"
)
_UNITS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000}


def read_actions(place: Place | None, scope: Scope) -> list[Action]:
    """Read one action or a list of them."""
    if place is None or place.value is None:
        return []
    return [action for one in place.one_or_many() for action in _read_action(one, scope)]


def _read_action(place: Place, scope: Scope) -> list[Action]:
    if isinstance(place.value, str):
        code = None if scope.reading.ours else unbrace(place.value)
        return _read_named(place, place.value, None, scope) if code is None else _read_code(place, code, scope)
    if not place.is_object("an action", 'write its name, or {"type": "name"}'):
        return []
    kind = place.get("type")
    name = kind.text("the name of an action") if kind else None
    if name is None:
        scope.reading.cannot(place, "the action has no type", 'write {"type": "name"}')
        return []
    if name.startswith("xstate."):
        return _read_builtin(place, name.removeprefix("xstate."), scope)
    if scope.reading.ours and name in VERBS and "params" in place:
        return [{name: place.value["params"]}]
    return _read_named(place, name, place.get("params"), scope)


def _read_code(place: Place, code: str, scope: Scope) -> list[Action]:
    """Read an action that is a function. It becomes a message with the code, for its receiver to implement."""
    if code.isidentifier():
        return _read_named(place, code, None, scope)
    message = "the action is code; it is now a message that holds it"
    scope.reading.report.add("SB220", place.path, message, 'write out what it does, such as {"set": {...}}')
    return [{"emit": {"type": "inline", "data": {"code": literal(code)}}}]


def _read_named(place: Place, name: str, params: Place | None, scope: Scope) -> list[Action]:
    """Read a named action. It is translated if the text implements it, else it becomes a message to act on outside."""
    found = expressions.of("actions", name, scope)
    if found is not None and not expressions.is_code(found.value):
        return read_actions(found, expressions.deeper(scope, read_params(params, scope)))
    message: dict[str, Any] = {"type": event_to_send(name, place.path, scope.reading)}
    if params is not None and params.value not in ({}, None):
        message["data"] = read_object(params, scope, "params")
    scope.reading.report.add(
        "SB220",
        place.path,
        f"the action {quote(name)} is only a name; it is now a message of that name",
        'write out what it does, such as {"set": {"field": "expression"}}',
    )
    return [{"emit": message}]


def _read_builtin(place: Place, name: str, scope: Scope) -> list[Action]:
    """Read one of XState's own actions. Their arguments are in ``params``, or beside ``type`` as older tools write."""
    reader = _READERS.get(name)
    if reader is None:
        hint = _INSTEAD.get(name, "")
        scope.reading.cannot(place, f"the action {quote(f'xstate.{name}')} does not exist here", hint)
        return []
    return reader(_Arguments(place), scope)


class _Arguments:
    def __init__(self, place: Place) -> None:
        self.place = place
        params = place.get("params")
        self._homes = [home for home in (params, place) if home is not None and isinstance(home.value, dict)]

    def get(self, *names: str) -> Place | None:
        """Return the first of these arguments that has a value."""
        return next(
            (home.at(n) for n in names for home in self._homes if n in home and home.value[n] is not None), None
        )


def _assign(arguments: _Arguments, scope: Scope) -> list[Action]:
    found: list[list[Action]] = []
    scope = replace(scope, loops=found)
    place = arguments.get("assignment", "assignments") or arguments.place.get("params") or arguments.place
    if isinstance(place.value, str):
        return [action for one in _read_computed(place, scope) for action in array_methods.finish_loops(found, one)]
    if not place.is_object("an object of fields and values"):
        return []
    if place is arguments.place and len(place.value) == 1:
        scope.reading.code_missing(place, "the assignment", "xstate.assign")
    values = {}
    for name, value in place.items():
        if place is not arguments.place or name != "type":
            values[scope.reading.field(name, value)] = read_value(value, scope)
    return (
        array_methods.finish_loops(found, {"set": _sort_assignments(values, arguments.place, scope)}) if values else []
    )


def _read_computed(place: Place, scope: Scope) -> list[Action]:
    """Read ``assign(({context}) => ({field: value}))``."""
    code = unbrace(place.value) or place.value
    found = expressions.fields_of(code, scope, place)
    if isinstance(found, dict):
        values = {scope.reading.field(name, place): value for name, value in found.items()}
        return [{"set": _sort_assignments(values, place, scope)}]
    message = f"the assignment {quote(code)} cannot be translated: {found.why}"
    place.report.add("SB140", place.path, message, found.hint or 'write {"set": {"field": "expression"}}')
    return []


def _sort_assignments(values: dict[str, Any], place: Place, scope: Scope) -> dict[str, Any]:
    """Sort assignments so that a field is read before it is set.

    XState computes all values before it sets any field; here they are set one after the other.
    """
    readers: dict[str, list[str]] = {name: [] for name in values}
    for name, value in values.items():
        for read in fields_read(value):
            if read in values and read != name:
                readers[read].append(name)
    order = TopologicalSorter(readers)
    try:
        return {name: values[name] for name in order.static_order()}
    except CycleError as error:
        message = (
            f"the fields {', '.join(sorted(set(error.args[1])))} are set from each other; here one after the other is"
        )
        scope.reading.report.add("SB224", place.path, message, "use a further field to hold a value meanwhile")
        return values


def _event(arguments: _Arguments, scope: Scope) -> dict[str, Any]:
    """Return ``event`` and ``data`` of a raise or a send."""
    place = arguments.get("event")
    if place is None:
        scope.reading.cannot(arguments.place, "no event is named", 'write {"event": {"type": "name"}}')
        return {"event": "_"}
    if isinstance(place.value, str):
        code = unbrace(place.value)
        if code is None:
            return {"event": event_to_send(place.value, place.path, scope.reading)}
        return _read_computed_event(place, code, scope)
    if not place.is_object("an event", 'write {"type": "name"}'):
        return {"event": "_"}
    return _event_object(place, scope)


def _read_computed_event(place: Place, code: str, scope: Scope) -> dict[str, Any]:
    """Read ``raise(({context}) => ({type: "name", field: value}))``."""
    fields = {} if scope.reading.ours else expressions.fields_of(code, scope, place)
    if not isinstance(fields, dict) or "type" not in fields:
        whole = read_expression(place, code, scope)
        return {"event": {"expr": f"({whole}).type"}, "data": whole}
    named = parse_expression(fields["type"]).tree
    event: Any = {"expr": fields["type"]}
    if named[0] == "str":
        event = event_to_send(named[1], place.path, scope.reading)
    data = {key: value for key, value in fields.items() if key != "type"}
    return {"event": event, "data": data} if data else {"event": event}


def _event_object(place: Place, scope: Scope) -> dict[str, Any]:
    kind = place.get("type")
    name = kind.text("an event's name") if kind else None
    if kind is None or name is None:
        scope.reading.cannot(place, "the event has no type", 'write {"type": "name"}')
        return {"event": "_"}
    code = unbrace(name)
    event: Any = (
        event_to_send(name, kind.path, scope.reading) if code is None else {"expr": read_expression(kind, code, scope)}
    )
    data = {key: read_value(value, scope) for key, value in place.items() if key != "type"}
    return {"event": event, "data": data} if data else {"event": event}


def _name_or_expression(place: Place, scope: Scope) -> Any:
    """Return the id of a send or a cancel."""
    text = place.text("an id")
    code = unbrace(text) if text else None
    return text if code is None else {"expr": read_expression(place, code, scope)}


def _with_options(event: dict[str, Any], arguments: _Arguments, scope: Scope) -> dict[str, Any]:
    delay, id = arguments.get("delay"), arguments.get("id", "sendId")
    if delay is not None and delay.value not in (0, ""):
        event["delay"] = read_delay(delay, scope)
    if id is not None and id.value != "":
        event["id"] = _name_or_expression(id, scope)
    return event


def _raise(arguments: _Arguments, scope: Scope) -> list[Action]:
    """Read a raise. Without a delay it is an internal event; with one it is an external event, as in XState."""
    event = _with_options(_event(arguments, scope), arguments, scope)
    if "delay" in event:
        return [{"send": event}]
    event.pop("id", None)
    return [{"raise": event["event"] if list(event) == ["event"] and isinstance(event["event"], str) else event}]


def _send_to(arguments: _Arguments, scope: Scope) -> list[Action]:
    to = arguments.get("to", "actorRef", "targetId")
    return _send(arguments, scope, _actor(to, scope) if to else None)


def _forward(arguments: _Arguments, scope: Scope) -> list[Action]:
    to = arguments.get("to", "target")
    send: dict[str, Any] = {"event": {"expr": "trigger.name"}, "data": "event"}
    return [{"send": send | ({"to": _actor(to, scope)} if to else {})}]


def _send(arguments: _Arguments, scope: Scope, to: str | None) -> list[Action]:
    event = _event(arguments, scope)
    return [{"send": _with_options(event | ({} if to is None else {"to": to}), arguments, scope)}]


def _actor(place: Place, scope: Scope) -> str:
    """Return the target of an actor, which is the id of its invoke."""
    text = place.text("the id of an actor")
    if text is None:
        return literal("")
    code = unbrace(text)
    if code is not None:
        return read_expression(place, code, scope)
    return literal(text if text.startswith("#_") else f"#_{text}")


def _cancel(arguments: _Arguments, scope: Scope) -> list[Action]:
    id = arguments.get("sendId", "id")
    if id is None:
        scope.reading.cannot(arguments.place, "the cancel names no id", 'write {"sendId": "id"}')
        return []
    return [{"cancel": _name_or_expression(id, scope)}]


def _log(arguments: _Arguments, scope: Scope) -> list[Action]:
    message, label = arguments.get("message", "value", "expr"), arguments.get("label")
    value = read_value(message, scope) if message else literal("")
    return [{"log": {"label": read_value(label, scope), "message": value} if label and label.value else value}]


def _emit(arguments: _Arguments, scope: Scope) -> list[Action]:
    event = _event(arguments, scope)
    if not isinstance(event["event"], str):
        scope.reading.cannot(arguments.place, "the type of a message cannot be computed", "write the messages out")
        return []
    return [{"emit": {"type": event["event"]} | ({"data": event["data"]} if "data" in event else {})}]


def _custom(arguments: _Arguments, scope: Scope) -> list[Action]:
    scope.reading.code_missing(arguments.place, "the action", str(arguments.place.value.get("value", ""))[:200])
    return []


def _choose(arguments: _Arguments, scope: Scope) -> list[Action]:
    """Read the choice of XState 4: the actions of the first branch whose guard holds."""
    branches = []
    conditions = arguments.get("conds", "guards", "branches")
    for one in conditions.one_or_many() if conditions else ():
        guard = one.get("cond") or one.get("guard")
        branch: Action = {"do": read_actions(one.get("actions"), scope)}
        branches.append(branch if guard is None else {"guard": read_guard(guard, scope), **branch})
    return [{"if": branches}] if branches else []


_READERS: dict[str, Callable[[_Arguments, Scope], list[Action]]] = {
    "assign": _assign,
    "raise": _raise,
    "send": _send_to,
    "sendTo": _send_to,
    "sendParent": lambda arguments, scope: _send(arguments, scope, literal("#_parent")),
    "forwardTo": _forward,
    "respond": lambda arguments, scope: _send(arguments, scope, "trigger.origin"),
    "choose": _choose,
    "cancel": _cancel,
    "log": _log,
    "emit": _emit,
    "custom": _custom,
}


def read_delay(place: Place, scope: Scope) -> Any:
    """Read a delay as ``send`` takes it: a number of ms, a duration, or an expression that gives ms."""
    if isinstance(place.value, int | float) and not isinstance(place.value, bool):
        return place.value
    text = place.text("a delay", "write milliseconds")
    if text is None:
        return 0
    fixed = read_fixed_delay(text)
    return fixed if fixed is not None else {"expr": delay_expression(place, text, scope)}


def read_fixed_delay(text: str) -> int | float | str | None:
    """Return milliseconds, or a duration as people write it; None for any other text."""
    trimmed = text.strip()
    if re.fullmatch(r"\d{1,15}", trimmed):
        return int(trimmed)
    if parse_duration(trimmed) is not None:
        return trimmed
    match = _ISO.fullmatch(trimmed)
    if match is None:
        return None
    total = sum(float(match[unit] or 0) * size for unit, size in _UNITS.items())
    return round(total)


def delay_expression(place: Place, text: str, scope: Scope) -> str:
    code = unbrace(text)
    if code is not None:
        return read_expression(place, code, scope)
    found = expressions.of("delays", text, scope)
    if found is not None and isinstance(found.value, int | float | str):
        fixed = read_fixed_delay(str(found.value))
        return str(fixed) if fixed is not None else delay_expression(found, found.value, expressions.deeper(scope))
    if text in scope.reading.fields:
        return scope.reading.fields[text]
    scope.reading.report.add(
        "SB140",
        place.path,
        f"the delay {quote(text)} has no length in this text",
        'write milliseconds, or a duration such as "30s"',
    )
    return text
