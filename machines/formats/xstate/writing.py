"""Writes a whole config: one of XState's own actions if it means the same, else a named one that only we understand."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from machines.engine import expressions
from machines.engine.definitions import FieldOutline, Finding, Outline, outline
from machines.engine.definitions.durations import parse_duration
from machines.engine.definitions.findings import Path, Report, quote
from machines.engine.definitions.place import PlainCopier
from machines.engine.definitions.scope import Branch, Tree
from machines.formats.text import single
from machines.formats.xstate.context import (
    DIALECT,
    DONE_ACTOR,
    DONE_INVOKE,
    DONE_STATE,
    DONE_STATE_5,
    ERROR_ACTOR,
    ERROR_INVOKE,
    INVOKE_KEYS,
    MACHINE_KEYS,
    OURS,
    STATE_KEYS,
    TRANSITION_KEYS,
    as_list,
    covering,
    fields_read,
    one_or_many,
    unbrace,
)

Action = dict[str, Any]


def write(definition: dict[str, Any]) -> tuple[str, list[Finding]]:
    """Return the definition as an XState config. Raises DefinitionError for a definition that has errors."""
    drawn = outline(definition)
    report = Report()
    report.document = document = PlainCopier(report.add).copy(definition)
    tree = Tree(document["id"], document)
    events = {*document.get("events", {}), *_events(document.get("states", {}))}
    writing = Writing(report, tree, sorted(events))
    body = write_state(document, (), tree.top, writing)
    config = {"id": document["id"], "queryLanguage": DIALECT}
    config |= {"version": document["version"]} if "version" in document else {}
    config |= write_data(document, drawn, writing)
    config |= {key: value for key, value in body.items() if key != "id"}
    if "output" in document:
        config["output"] = write_value(document["output"])
    config |= _write_meta(document, writing)
    text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    if "{{" in text:
        hint = "give XState an implementation for each, or let a tool evaluate them"
        message = "what stands between double braces is an expression of ours, which XState does not evaluate"
        report.add("SB224", (), message, hint)
    return text, report.findings()


def _write_meta(document: dict[str, Any], writing: Writing) -> dict[str, Any]:
    """Write properties that XState has no place for below ``meta``."""
    elsewhere = ("events", "context")
    kept = {key: document[key] for key in MACHINE_KEYS if key in document and key not in elsewhere}
    for key in kept:
        message = f'XState has no "{key}"; it stays below "meta", where only Signalbox reads it'
        writing.add_once("SB222", (key,), message)
    meta = {**document.get("meta", {}), **({OURS: kept} if kept else {})}
    return {"meta": meta} if meta else {}


def _events(states: dict[str, Any]) -> Iterator[str]:
    """Yield the events that are listened for, raised or sent, at any level."""
    for value in _objects(states):
        on = value.get("on")
        if isinstance(on, dict):
            yield from on
        for verb in ("raise", "send"):
            event = value.get(verb)
            name = event.get("event") if isinstance(event, dict) else event
            if isinstance(name, str):
                yield name


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(item)


def write_data(definition: dict[str, Any], outline: Outline, writing: Writing) -> dict[str, Any]:
    written: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    context = definition.get("context") or {}
    if isinstance(context.get("properties"), dict) and context.get("type") == "object":
        schemas["context"] = context
        properties = context["properties"]
        context = {key: body["default"] for key, body in properties.items() if "default" in body}
    if context:
        written["context"] = context
    if definition.get("events"):
        schemas["events"] = {
            name: _event_schema(name, definition["events"][name], outline) for name in definition["events"]
        }
    if schemas:
        written["schemas"] = schemas
        message = "types and payloads are written as JSON Schemas, which Stately reads and XState does not check"
        writing.report.add("SB224", ("context" if "context" in schemas else "events",), message)
    return written


def _event_schema(name: str, event: dict[str, Any], outline: Outline) -> dict[str, Any]:
    declared = outline.events[name]
    described = {key: event[key] for key in ("description", "meta") if event.get(key)}
    if declared.fields is None:
        return described
    required = [field.name for field in declared.fields if field.required]
    schema = {"type": "object", "properties": {field.name: _field(field) for field in declared.fields}}
    return {**described, **schema, **({"required": required} if required else {}), "additionalProperties": False}


def _field(field: FieldOutline) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    if field.types != ("any",):
        schema["type"] = single(list(field.types))
    if field.description:
        schema["description"] = field.description
    if field.initial is not None:
        schema["default"] = field.initial
    return schema


def write_state(body: dict[str, Any], path: Path, branch: Branch, writing: Writing) -> dict[str, Any]:
    """Write a state except for its name. For the machine, write what it shares with states."""
    written: dict[str, Any] = {}
    if branch.explicit:
        written["id"] = branch.explicit
    kind = body.get("type")
    if kind in ("parallel", "final", "history"):
        written["type"] = kind
    written |= {key: body[key] for key in ("description", "tags", "meta") if key in body}
    if ours := {key: body[key] for key in STATE_KEYS if key in body}:
        written["meta"] = {**body.get("meta", {}), OURS: ours}
    if kind == "history":
        return written | _history(body, path, branch, writing)
    if "initial" in body:
        written["initial"] = _initial(body["initial"], (*path, "initial"), branch, writing)
    for key in ("entry", "exit"):
        actions = write_actions(body.get(key), (*path, key), writing)
        written |= {key: actions} if actions else {}
    if body.get("invoke"):
        written["invoke"] = write_invokes(body["invoke"], (*path, "invoke"), branch, writing)
    written |= _write_transitions(body, path, branch, writing)
    if "output" in body:
        written["output"] = write_value(body["output"])
    states = body.get("states") or {}
    if states:
        written["states"] = {
            key: write_state(below, (*path, "states", key), branch.children[key], writing)
            for key, below in states.items()
        }
    return written


def _write_transitions(body: dict[str, Any], path: Path, branch: Branch, writing: Writing) -> dict[str, Any]:
    written: dict[str, Any] = {}
    if body.get("on"):
        written["on"] = write_on(body["on"], (*path, "on"), branch, writing)
    if body.get("after"):
        written["after"] = write_after(body["after"], (*path, "after"), branch, writing)
    for key in ("onDone", "always"):
        if key in body:
            written[key] = write_transitions(body[key], (*path, key), branch, writing)
    return written


def _initial(initial: Any, path: Path, branch: Branch, writing: Writing) -> Any:
    """Write the initial state. XState starts in one direct child; any other state can only be named by its id."""
    actions = write_actions(initial.get("actions"), (*path, "actions"), writing) if isinstance(initial, dict) else []
    named = one_or_many(initial.get("target") if isinstance(initial, dict) else initial)
    targets = []
    for text in named:
        found = writing.tree.find(text, branch, branch)
        near = found is not None and found.parent is branch
        targets.append(found.key if found and near else f"#{writing.id(found)}" if found else text)
        if not near:
            writing.report.add("SB222", path, "XState begins with a state right below; this one stands further inside")
    if len(targets) > 1:
        writing.report.add("SB222", path, "XState begins with one state, not with several")
    target = single(targets)
    return {"target": target, "actions": actions} if actions else target


def _history(body: dict[str, Any], path: Path, branch: Branch, writing: Writing) -> dict[str, Any]:
    written: dict[str, Any] = {"history": body["history"]} if "history" in body else {}
    target = body.get("target")
    if isinstance(target, dict):
        if target.get("actions"):
            writing.report.add("SB222", (*path, "target"), "XState has no actions on the way out of a history state")
        target = target.get("target")
    if target is not None and branch.parent is not None:
        parent = branch.parent
        written["target"] = single([writing.target(one, branch, parent) for one in one_or_many(target)])
    return written


def write_invokes(invokes: Any, path: Path, source: Branch, writing: Writing) -> Any:
    several = isinstance(invokes, list)
    found = enumerate(one_or_many(invokes))
    return single([_write_invoke(one, (*path, place) if several else path, source, writing) for place, one in found])


def _write_invoke(invoke: dict[str, Any], path: Path, source: Branch, writing: Writing) -> dict[str, Any]:
    written: dict[str, Any] = {"src": invoke["src"] if isinstance(invoke["src"], str) else "computed"}
    written |= {key: invoke[key] for key in ("id", "description") if key in invoke}
    if "input" in invoke:
        written["input"] = write_value(invoke["input"])
    for key in ("onDone", "onError"):
        if key in invoke:
            written[key] = write_transitions(invoke[key], (*path, key), source, writing)
    ours = {key: invoke[key] for key in INVOKE_KEYS if key in invoke and key not in written}
    if written["src"] == "computed":
        ours["src"] = invoke["src"]
    for key in ours:
        message = f'XState has no "{key}" for an invoke; it stays below "meta", where only Signalbox reads it'
        writing.add_once("SB222", (*path, key), message)
    meta = {**invoke.get("meta", {}), **({OURS: ours} if ours else {})}
    return written | ({"meta": meta} if meta else {})


def write_on(on: dict[str, Any], path: Path, source: Branch, writing: Writing) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for event, transitions in on.items():
        name = _descriptor(event, (*path, event), writing)
        found = write_transitions(transitions, (*path, event), source, writing)
        written[name] = single([*as_list(written.get(name)), *one_or_many(found)]) if name in written else found
    _check_order(list(written), path, writing)
    return written


def write_transitions(transitions: Any, path: Path, source: Branch, writing: Writing) -> Any:
    if isinstance(transitions, list):
        return [_write_transition(one, (*path, index), source, writing) for index, one in enumerate(transitions)]
    return _write_transition(transitions, path, source, writing)


def write_after(after: dict[str, Any], path: Path, source: Branch, writing: Writing) -> dict[str, Any]:
    """Write delayed transitions by milliseconds, or by the expression that gives them."""
    written: dict[str, Any] = {}
    for delay, transitions in after.items():
        text = delay.strip()
        length = text if text.isdigit() else parse_duration(text)
        key = write_expression(text) if length is None else str(length)
        found = write_transitions(transitions, (*path, delay), source, writing)
        if key in written:
            message = f"two delays of {key} ms are one for XState: only one of their transitions is taken"
            writing.report.add("SB224", (*path, delay), message)
            found = [*one_or_many(written[key]), *one_or_many(found)]
        written[key] = found
    return written


def _write_transition(transition: Any, path: Path, source: Branch, writing: Writing) -> dict[str, Any]:
    near = source.parent or source
    if isinstance(transition, str):
        return {"target": writing.target(transition, source, near)}
    written: dict[str, Any] = {}
    if transition.get("target") not in (None, []):
        targets = [writing.target(one, source, near) for one in one_or_many(transition["target"])]
        written["target"] = single(targets)
    guard = write_guard(transition.get("guard"))
    if guard is not None:
        written["guard"] = guard
    actions = write_actions(transition.get("actions"), (*path, "actions"), writing)
    if actions:
        written["actions"] = actions
    if transition.get("reenter"):
        written["reenter"] = True
    written |= {key: transition[key] for key in ("description", "meta") if key in transition}
    if ours := {key: transition[key] for key in TRANSITION_KEYS if key in transition}:
        written["meta"] = {**transition.get("meta", {}), OURS: ours}
    return written


def _descriptor(event: str, path: Path, writing: Writing) -> str:
    """Write a descriptor. The engine's own events have other names in XState."""
    for prefix, theirs in ((DONE_INVOKE, DONE_ACTOR), (ERROR_INVOKE, ERROR_ACTOR)):
        if event.startswith(prefix):
            return theirs + event.removeprefix(prefix)
    if event.startswith(DONE_STATE):
        word = event.removeprefix(DONE_STATE)
        found = next((branch for branch in writing.tree.branches if branch.word == word), None)
        return DONE_STATE_5 + (writing.id(found) if found else word)
    if event.split(".")[0] == "error":
        writing.add_once(
            "SB222", path, f"XState raises no event {quote(event)}: there a failing action stops the machine"
        )
    longer = writing.longer(event)
    if longer is not None:
        message = f"here the event {quote(event)} also takes {quote(longer)}; in XState only {quote(f'{event}.*')} does"
        writing.add_once("SB224", path, message)
    return event


def _check_order(names: list[str], path: Path, writing: Writing) -> None:
    """Report patterns that XState tries in another order.

    Here the first one in the document is tried first; XState tries only the most exact one.
    """
    places = {name: place for place, name in enumerate(names)}
    for other, other_place in places.items():
        for pattern in covering(other):
            if pattern in places and pattern.endswith("*"):
                said = "is tried before" if places[pattern] < other_place else "is tried when no guard holds for"
                message = f"the pattern {quote(pattern)} {said} {quote(other)} here, and not in XState"
                writing.add_once("SB224", (*path, pattern), message)


def write_actions(actions: Any, path: Path, writing: Writing) -> list[Action]:
    if actions is None:
        return []
    return [written for one in one_or_many(actions) for written in _write_action(one, path, writing)]


def _write_action(action: Action, path: Path, writing: Writing) -> list[Action]:
    verb, argument = (action["type"], action["params"]) if "type" in action else next(iter(action.items()))
    written = _WRITERS[verb](argument) if verb in _WRITERS else None
    if written is not None:
        return written
    message = f'XState has no action that does what this {verb} does; it is written as a named action "{verb}"'
    writing.add_once("SB222", path, message, "give it an implementation where XState is to run it")
    return [{"type": verb, "params": argument}]


def _builtin(name: str, **params: Any) -> list[Action]:
    return [{"type": f"xstate.{name}", "params": {key: value for key, value in params.items() if value is not None}}]


def _set(fields: dict[str, Any]) -> list[Action]:
    """Write assignments. A value that reads a field set before it starts a new ``assign``.

    XState computes all values of an ``assign`` before it sets any field.
    """
    groups: list[dict[str, Any]] = [{}]
    for name, value in fields.items():
        if fields_read(value) & set(groups[-1]):
            groups.append({})
        groups[-1][name] = write_value(value)
    return [action for group in groups for action in _builtin("assign", **group)] if fields else []


def _event_of(argument: Any) -> dict[str, Any] | None:
    """Write an event. XState keeps its fields beside its type; return None if they cannot be written there."""
    if isinstance(argument, str):
        return {"type": argument}
    name, data = argument.get("event"), argument.get("data")
    if isinstance(name, dict):
        name = name.get("type") if set(name) == {"type"} else None
    if not isinstance(name, str) or not isinstance(data, dict | None) or "type" in (data or {}):
        return None
    return {"type": name, **write_value(data or {})}


def _name(value: Any) -> Any:
    """Write an id, given or computed."""
    return write_expression(value["expr"]) if isinstance(value, dict) else value


def _raise(argument: Any) -> list[Action] | None:
    event = _event_of(argument)
    options = {} if isinstance(argument, str) else argument
    if event is None or ("id" in options and not options.get("delay")):
        return None
    return _builtin("raise", event=event, delay=_name(options.get("delay")), id=_name(options.get("id")))


def _send(argument: Any) -> list[Action] | None:
    """Write a send to the parent, to an invoked actor, or later to itself. XState does any other send in code."""
    if isinstance(argument, str) or {"type", "idlocation"} & set(argument):
        return None
    event, to = _event_of(argument), argument.get("to")
    options = {"delay": _name(argument.get("delay")), "id": _name(argument.get("id"))}
    if event is None:
        return None
    if to is None:
        return _builtin("raise", event=event, **options) if argument.get("delay") else None
    address = text_meant(to) if isinstance(to, str) else None
    if address == "#_parent":
        return _builtin("sendParent", event=event, **options)
    if address is None or not address.startswith("#_") or address.startswith(("#_internal", "#_scxml_")):
        return None
    return _builtin("sendTo", to=address.removeprefix("#_"), event=event, **options)


def _emit(argument: Any) -> list[Action] | None:
    event = _event_of({"event": argument["type"], "data": argument.get("data")})
    return None if event is None else _builtin("emit", event=event)


_WRITERS: dict[str, Callable[[Any], list[Action] | None]] = {
    "set": _set,
    "raise": _raise,
    "send": _send,
    "cancel": lambda argument: _builtin("cancel", sendId=_name(argument)),
    "log": lambda argument: [{"type": "xstate.log", "params": {"message": write_value(argument)}}],
    "emit": _emit,
}


@dataclass(slots=True)
class Writing:
    """``events``: every event that is listened for or sent, sorted, to find names that begin with another name."""

    report: Report
    tree: Tree
    events: list[str] = field(default_factory=list)
    _reported: set[str] = field(default_factory=set)

    def longer(self, event: str) -> str | None:
        """Return an event whose name begins with this one and a dot."""
        place = bisect_left(self.events, f"{event}.")
        found = self.events[place] if place < len(self.events) else ""
        return found if found.startswith(f"{event}.") else None

    def add_once(self, code: str, path: Path, message: str, hint: str = "") -> None:
        """Add a finding at the first place that it applies to."""
        if message not in self._reported:
            self._reported.add(message)
            self.report.add(code, path, message, hint)

    def id(self, branch: Branch) -> str:
        """Return the id that XState gives the state."""
        if branch.explicit or branch.parent is None:
            return branch.explicit or self.tree.machine
        return ".".join([self.tree.machine, *map(escape, branch.keys)])

    def target(self, text: str, source: Branch, near: Branch) -> str:
        """Write a target for XState: the key of a sibling, or the state's id."""
        found = self.tree.find(text, source, near)
        if found is None:
            return text
        if found.parent is near and source.parent is not None:
            return escape(found.key)
        return f"#{self.id(found)}"


def escape(key: str) -> str:
    """Escape a key in a target. In XState a dot separates keys, and a backslash makes it part of one."""
    return key.replace("\\", "\\\\").replace(".", "\\.")


def write_value(value: Any) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return {key: write_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [write_value(item) for item in value]
    return value


def write_expression(text: str) -> str:
    return f"{{{{ {text.strip()} }}}}"


def write_guard(guard: Any) -> Any:
    """Write a guard. Return None for a guard that always holds."""
    if guard is None or guard is True:
        return None
    return write_expression(guard if isinstance(guard, str) else "False")


def text_meant(expression: str) -> str | None:
    """Return the text of an expression that is only a text, as in ``"'calm'"``; None for any other."""
    tree = expressions.read(expression).tree
    return tree[1] if tree[0] == "str" else None


def _text(expression: str) -> str:
    meant = text_meant(expression)
    if meant is None or unbrace(meant) is not None:
        return write_expression(expression)
    return meant
