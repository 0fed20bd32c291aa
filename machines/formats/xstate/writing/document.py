"""Writes a whole config."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from machines.engine.definitions import FieldOutline, Finding, Outline, outline
from machines.engine.definitions.place import PlainCopier
from machines.engine.definitions.report import Report
from machines.engine.definitions.scope import Tree
from machines.formats.xstate.dialect import DIALECT, MACHINE_KEYS, OURS

from .context import Writing
from .states import write_state
from .values import write_value


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
    config |= _ours(document, writing)
    text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    if "{{" in text:
        hint = "give XState an implementation for each, or let a tool evaluate them"
        message = "what stands between double braces is an expression of ours, which XState does not evaluate"
        report.add("SB224", (), message, hint)
    return text, report.findings()


def _ours(document: dict[str, Any], writing: Writing) -> dict[str, Any]:
    """Write properties that XState has no place for below ``meta``."""
    elsewhere = ("events", "context")
    kept = {key: document[key] for key in MACHINE_KEYS if key in document and key not in elsewhere}
    for key in kept:
        message = f'XState has no "{key}"; it stays below "meta", where only Signalbox reads it'
        writing.once("SB222", (key,), message)
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
        schemas["events"] = {name: _event(name, definition["events"][name], outline) for name in definition["events"]}
    if schemas:
        written["schemas"] = schemas
        message = "types and payloads are written as JSON Schemas, which Stately reads and XState does not check"
        writing.report.add("SB224", ("context" if "context" in schemas else "events",), message)
    return written


def _event(name: str, event: dict[str, Any], outline: Outline) -> dict[str, Any]:
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
        schema["type"] = field.types[0] if len(field.types) == 1 else list(field.types)
    if field.description:
        schema["description"] = field.description
    if field.initial is not None:
        schema["default"] = field.initial
    return schema
