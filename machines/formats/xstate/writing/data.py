"""``context`` by example, and beside it JSON Schemas of the data and of the events, where Stately keeps them."""

from __future__ import annotations

from typing import Any

from machines.engine.definitions import FieldOutline, Outline

from .context import Writing


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
