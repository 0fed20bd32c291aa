"""Reads ``context`` by example, and the JSON Schemas that Stately writes below ``schemas``."""

from __future__ import annotations

from typing import Any

from machines.engine.definitions.place import Place
from machines.formats.javascript.kinds import ANY, Kinds, kinds_of
from machines.formats.xstate.context import Reading, Scope
from machines.formats.xstate.dialect import unbrace
from machines.formats.xstate.names import event_name, field_name
from machines.formats.xstate.source import scripts

Context = dict[str, Any]


def read_context(place: Place, reading: Reading) -> Context:
    """Read the data fields: by JSON Schema where there is one, else by example."""
    found = place.get("context")
    if found is not None and scripts.is_code(found.value):
        return _read_computed(found, reading)
    examples = _object(found, "an object of data fields by example") if found else {}
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
    found = scripts.initial_fields(code, Scope(reading, reading.states.top), place)
    if isinstance(found, scripts.Untranslated):
        what = scripts.describe(place.value)
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


def has_schema(place: Place) -> bool:
    return isinstance(_schema(place, "context").get("properties"), dict)


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


def _object(place: Place, what: str) -> dict[str, Any]:
    return place.value if place.value is not None and place.is_object(what) else {}
