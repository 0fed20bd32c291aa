"""Reads a whole config: its name, its data, its events, and its states.

Data is declared by example, or by the JSON Schemas that Stately writes below ``schemas``. A machine that XState has
expanded (``JSON.stringify(machine)``) is refused: it lacks ``always``, the targets of history states and the arguments
of built-in actions.
"""

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any

from machines.engine import limits
from machines.engine.definitions.findings import Finding, Path, Report, make_finding, quote, render
from machines.engine.definitions.place import Place, PlainCopier, TooLarge
from machines.formats.javascript.code import ANY, Kinds, kinds_of
from machines.formats.json import read as read_json
from machines.formats.text import stem
from machines.formats.xstate import exported_config, expressions
from machines.formats.xstate.context import (
    DIALECT,
    MACHINE_KEYS,
    Reading,
    Scope,
    States,
    as_list,
    covering,
    descriptor,
    event_name,
    field_name,
    machine_name,
    unbrace,
)

from . import states
from .values import read_value

KNOWN = (
    *states.KNOWN,
    *("context", "schemas", "schema", "types", "queryLanguage", "$schema", "parallel", exported_config.SETUP),
)
_NAMELESS = "machine"
ONLY = "active"  # the state of a machine without states
Context = dict[str, Any]
FOUR = (
    *("cond", "internal", "onEntry", "onExit", "activities", "autoForward", "predictableActionArguments"),
    *("preserveActionOrder", "tsTypes", "delimiter"),
)
FIVE = ("guard", "reenter", "output", "onSnapshot", "types", "queryLanguage")
_DATA = ("meta", "context", "params", "input", "data", "schemas", "types", "schema")


class ConfigReport(Report):
    """Describes a piece of a script in the message where something else is expected."""

    def add(self, code: str, path: Path, message: str, hint: str = "", *, later: bool = False) -> None:
        if message.endswith("found text"):
            value = self.document
            for part in path:
                value = value[part] if isinstance(value, dict | list) else None
            if expressions.is_code(value):
                message = f"{message.removesuffix('text')}{expressions.describe(value)}"
        super().add(code, path, message, hint, later=later)


def read(text: str, base: str | FilePath | None = None) -> tuple[Any, list[Finding]]:
    """Return the definition and all findings. Next to an error, the definition is a draft to continue from."""
    is_json = text.lstrip().startswith(("{", "[", '"'))
    config, findings = read_json(text) if is_json else exported_config.read(text)
    if not isinstance(config, dict):
        return config, findings
    if "key" in config and isinstance(config.get("transitions"), list):
        message = "XState wrote this machine out: its always transitions and the rest of its actions are not in it"
        hint = "export the config that was given to createMachine"
        return None, [*findings, make_finding("SB141", "", message, hint)]
    report = ConfigReport()
    try:
        report.document = PlainCopier(report.add).copy(config)
    except TooLarge:
        return None, [make_finding("SB111", "", f"the definition is larger than {limits.MAX_DEFINITION} bytes")]
    if report.has_errors:
        return None, [*findings, *report.findings()]
    definition = _definition(report.document, report, stem(base))
    return definition, [*findings, *report.findings()]


def _definition(config: dict[str, Any], report: Report, name: str) -> dict[str, Any]:
    place = Place(config, (), report)
    reading = _begin(place, report, name)
    scope = Scope(reading, reading.states.top)
    context = read_context(place, reading)
    body = states.inside(place, reading.states.top, reading)
    output = place.get("output")
    definition: dict[str, Any] = {"id": reading.machine}
    if states.kind_of(place) == "parallel":
        definition["type"] = "parallel"
    definition |= {key: place.value[key] for key in ("version",) if place.value.get(key) is not None}
    definition |= states.for_people(place)
    has_schema = isinstance(_schema(place, "context").get("properties"), dict)
    definition |= {
        "context": with_undeclared(context, reading, schema=has_schema),
        "events": read_events(place, reading),
        "output": None if output is None else read_value(output, scope),
    }
    _check_root(place, body, reading)
    _begin_with(body, reading, parallel=definition.get("type") == "parallel")
    whole = {key: value for key, value in (definition | body).items() if value not in (None, {})}
    return reading.restore(whole, MACHINE_KEYS)


def _begin(place: Place, report: Report, name: str) -> Reading:
    """Return a new reading of the config. ``name``: the machine's name if the config has none."""
    config = place.value
    given = config.get("id") or config.get("key")
    named = isinstance(given, str) and given
    reading = Reading(report, States(given if named else "(machine)", config))
    reading.ours = config.get("queryLanguage") == DIALECT
    reading.machine = machine_name(given, ("id",), reading) if named else name or _NAMELESS
    if not named and not name:
        hint = f"it is {_NAMELESS!r} until you name it"
        report.add("SB223", ("id",), "the config has no id", hint)
    sign = None if reading.ours else sign_of_four(config)
    if sign is not None:
        reading.four = True
        message = f"read as XState 4, because of {render(sign)}: a transition to its own state enters it again"
        report.add("SB224", (), message)
    silent = Reading(Report(), reading.states)
    for event in sorted({descriptor(name, (), silent) for name in _list_events(config)}):
        for shorter in covering(f"{event[:-1]}x" if event.endswith(".*") else event):
            reading.longer.setdefault(shorter, []).append(event)
    reading.leave_out_unknown(place, KNOWN)
    reading.implementations = place.get(exported_config.SETUP)
    constants = reading.implementations.get("constants") if reading.implementations else None
    reading.constants = constants.value if constants else {}
    return reading


def _begin_with(body: dict[str, Any], reading: Reading, *, parallel: bool) -> None:
    """Add the actions that set computed inputs first. A machine without states gets one state."""
    if not body.get("states"):
        message = f"the machine has no states; it is always in the state {quote(ONLY)}"
        reading.report.add("SB224", ("states",), message)
        body |= {"initial": ONLY, "states": {ONLY: {}}}
    if not reading.first:
        return
    first = {"set": reading.first}
    if parallel or "entry" in body:
        body["entry"] = [first, *as_list(body.get("entry"))]
    else:
        initial = body.get("initial")
        known = initial if isinstance(initial, dict) else {"target": initial}
        body["initial"] = {**known, "actions": [first, *as_list(known.get("actions"))]}


def _list_events(config: Any) -> list[str]:
    """Return every key of an ``on``, at any level."""
    if not isinstance(config, dict):
        return []
    on, below = config.get("on"), config.get("states")
    names = list(on) if isinstance(on, dict) else []
    for child in below.values() if isinstance(below, dict) else ():
        names += _list_events(child)
    return names


def _check_root(place: Place, body: dict[str, Any], reading: Reading) -> None:
    if "onDone" in body:
        del body["onDone"]
        hint = 'put its states into one state that has the "onDone"'
        reading.cannot(place.at("onDone"), "a machine that is done is done", hint)
    for key in ("types", "schema"):
        if place.value.get(key) not in (None, {}):
            reading.leave_out(place.below(key), f'"{key}" is for TypeScript', 'declare data in "context" by example')
    language = place.value.get("queryLanguage")
    if language not in (None, DIALECT):
        message = f"expressions in {language} are read as far as JavaScript means the same"
        reading.report.add("SB224", ("queryLanguage",), message)


def read_context(place: Place, reading: Reading) -> Context:
    """Read the data fields: by JSON Schema where there is one, else by example."""
    found = place.get("context")
    if found is not None and expressions.is_code(found.value):
        return _read_computed(found, reading)
    is_object = found and found.value is not None and found.is_object("an object of data fields by example")
    examples = found.value if is_object else {}
    schema = _schema(place, "context")
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        reading.kinds = {_name(name, reading): _kinds(value) for name, value in examples.items()}
        return {_name(name, reading): value for name, value in examples.items()}
    fields = {_name(name, reading): dict(body) if isinstance(body, dict) else {} for name, body in properties.items()}
    for name, value in examples.items():
        fields.setdefault(_name(name, reading), {})["default"] = value
    return {**schema, "type": "object", "properties": fields}


def _read_computed(place: Place, reading: Reading) -> Context:
    """Read ``({input}) => ({...})``.

    Inputs are given when an instance is created; the other fields are set at its start.
    """
    code = unbrace(place.value) or ""
    found = expressions.initial_fields(code, Scope(reading, reading.states.top), place)
    if isinstance(found, expressions.Refusal):
        what = expressions.describe(place.value)
        message = f"the initial data is {what} that cannot be translated: {found.why}"
        place.report.add("SB140", place.path, message, found.hint or "write an object of data fields by example")
        return {}
    fields: Context = {}
    for name, value, expression in found:
        fields[reading.fields[name]] = value
        reading.kinds[reading.fields[name]] = _kinds(value)
        if expression is not None:
            reading.first[reading.fields[name]] = expression
    reading.undeclared = [name for name in reading.undeclared if name not in fields]
    if reading.given:
        message = f"the input is given as data when an instance is created: {', '.join(sorted(reading.given.values()))}"
        place.report.add("SB224", place.path, message)
    return fields


def _name(name: str, reading: Reading) -> str:
    if name not in reading.fields:
        reading.fields[name] = field_name(name, ("context", name), reading)
    return reading.fields[name]


def with_undeclared(context: Context, reading: Reading, *, schema: bool) -> Context:
    """Add the fields that are used and not declared, in a form that cannot be mistaken for a schema."""
    if schema:
        further = {name: {"default": None} for name in reading.undeclared}
        return {**context, "properties": {**context["properties"], **further}}
    examples = {**context, **dict.fromkeys(reading.undeclared)}
    if examples.get("type") == "object":  # by example this would look like a schema
        return {"type": "object", "properties": {name: {"default": value} for name, value in examples.items()}}
    return examples


def _kinds(example: Any) -> Kinds:
    """Return what a field of that type can hold, as long as nothing removes it."""
    return ANY if example is None else kinds_of(example)


def read_events(place: Place, reading: Reading) -> dict[str, Any]:
    """Read payloads by JSON Schema, if Stately wrote any."""
    events = {}
    for name, schema in _schema(place, "events").items():
        path = ("schemas", "events", name)
        events[event_name(name, path, reading)] = _event(schema, reading) if isinstance(schema, dict) else {}
    return events


def _event(schema: dict[str, Any], reading: Reading) -> dict[str, Any]:
    """Read an event's payload. XState includes the event's name in its fields, which is removed."""
    event: dict[str, Any] = {key: schema[key] for key in ("description", "meta") if schema.get(key)}
    payload = {key: value for key, value in schema.items() if key not in event}
    if not isinstance(payload.get("properties"), dict):
        return event
    if not reading.ours:
        payload["properties"] = {key: value for key, value in payload["properties"].items() if key != "type"}
        payload["required"] = [key for key in payload.get("required", ()) if key != "type"]
    return {**event, "payload": {**payload, "type": "object"}}


def _schema(place: Place, part: str) -> dict[str, Any]:
    schemas = place.value.get("schemas")
    found = schemas.get(part) if isinstance(schemas, dict) else None
    return found if isinstance(found, dict) else {}


def sign_of_four(config: Any) -> Path | None:
    """Return the path of a sign of version 4; None if there is none, or if anything is of version 5."""
    signs = list(_signs(config, ()))
    if any(path[-1] in FIVE for path in signs):
        return None
    return next((path for path in signs if path[-1] in FOUR), None)


def _signs(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _signs(item, (*path, index))
    if not isinstance(value, dict):
        return
    named = bool(path) and path[-1] in ("states", "on", "after")
    for key, item in value.items():
        if not named and key in (*FOUR, *FIVE):
            yield (*path, key)
        if named or key not in _DATA:
            yield from _signs(item, (*path, key))
