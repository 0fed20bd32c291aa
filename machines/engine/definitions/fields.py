"""Reads declared fields and their types: the data of a machine (``context``) and the payloads of its events.

Types have JSON Schema's names, and ``any``.
"""

import json
from collections.abc import Sequence
from typing import Any

from machines.engine import limits
from machines.engine.limits import MAX_INTEGER

from .findings import quote
from .model import MISSING, Event, Field
from .place import Place

TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
SCALARS = ("string", "integer", "number", "boolean")
ANY = ("any",)
RANDOM, SEARCHABLE = "random", "searchable"
"""How a field is encrypted: each value anew, or equal values equally."""


def get_type(value: Any) -> str:
    """Return the type of a JSON value. 3.0 is an integer, as in JSON Schema."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float) and abs(value) <= MAX_INTEGER and value == int(value):
        return "integer"
    return {int: "number", float: "number", str: "string", list: "array"}.get(type(value), "object")


def is_of_type(type_name: str, types: Sequence[str]) -> bool:
    """Tell whether a value of the type may be stored in a field of the types."""
    if "any" in types or type_name in types:
        return True
    return type_name == "integer" and "number" in types


def infer_types(value: Any) -> tuple[str, ...]:
    """Infer the types of a field from an example; null allows any type."""
    if value is None:
        return ANY
    if isinstance(value, float):
        return ("number",)
    return (get_type(value),)


def describe_types(types: tuple[str, ...]) -> str:
    return " or ".join(types)


_ANNOTATIONS = ("title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly")
_KEYWORDS = ("type", "required", "sensitive", "encrypted", *_ANNOTATIONS)
_OF_TEXT = ("minLength", "maxLength", "pattern", "format")
_OF_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_OF_ARRAYS = ("items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems")
_OF_OBJECTS = ("properties", "patternProperties", "additionalProperties", "minProperties", "maxProperties")
_OF_ALL = ("enum", "const", "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "$ref", "$defs")
_UNCHECKED = (*_OF_TEXT, *_OF_NUMBERS, *_OF_ARRAYS, *_OF_OBJECTS, *_OF_ALL)
_HINTS = {"index": 'list the field in the machine\'s own "index"'}
_OBJECT_KEYS = ("type", "properties", "required", "title", "description", "additionalProperties", "$schema", "$comment")


def read_context(place: Place) -> dict[str, Field]:
    """Read the data fields, declared by example or by JSON Schema."""
    if not place.is_object():
        return {}
    fields = _read_schema(place) if _is_object_schema(place.value) else _read_examples(place)
    initial = {field.name: field.initial for field in fields.values() if field.initial is not MISSING}
    size = len(json.dumps(initial, ensure_ascii=False, separators=(",", ":")).encode())
    if _depth(initial) > limits.MAX_JSON_DEPTH + 1:
        place.error("SB111", f"the initial data is nested more than {limits.MAX_JSON_DEPTH} levels deep")
    if size > limits.MAX_DATA:
        place.error("SB111", f"the initial data is {size} bytes of JSON; at most {limits.MAX_DATA} fit an instance")
    return fields


def _depth(value: Any) -> int:
    """Return how deep objects and arrays are nested."""
    if not isinstance(value, (dict, list)):
        return 0
    return 1 + max(map(_depth, value.values() if isinstance(value, dict) else value), default=0)


def _is_object_schema(value: dict[str, Any]) -> bool:
    return value.get("type") == "object" and isinstance(value.get("properties"), dict)


def _read_examples(place: Place) -> dict[str, Field]:
    if place.value.get("type") == "object":
        hint = 'for a JSON Schema add "properties": {...}'
        place.report.add("SB212", place.below("type"), 'read as a data field called "type"', hint)
    fields = {}
    for name, example in place.items():
        _check_name(name, example)
        if not example.broken:
            if name != "type":
                _check_example(example)
            fields[name] = Field(name, infer_types(example.value), example.path, initial=_clean(example))
    return fields


def _check_example(place: Place) -> None:
    """Warn about ``"integer"`` as an example: it is a text, and its author probably meant the type."""
    if place.value in TYPES and place.value != "string":
        place.warn("SB212", f"read as an example, and so as text: {quote(place.value)}", _schema_hint(place))


def _schema_hint(place: Place) -> str:
    """Return a hint: all fields of ``context`` are declared by example, or none; a payload field may be declared
    either way."""
    if place.path[0] == "context":
        return 'for a JSON Schema write {"type": "object", "properties": {...}}'
    return f'for the type write {{"type": "{place.value}"}}'


def _clean(place: Place) -> Any:
    """Return the value without its broken parts, which were reported; such a definition is never published."""
    return json.loads(json.dumps(place.value, default=lambda broken: None))


def _read_schema(place: Place) -> dict[str, Field]:
    _check_object_keywords(place)
    required = _list_required_names(place)
    properties = place.at("properties")
    fields = {}
    for name, schema in properties.items():
        _check_name(name, schema)
        fields[name] = _read_property(name, schema, name in required)
    for name in required:
        if name not in fields:
            place.report.add_unknown("SB102", place.below("required"), "property", name, fields)
    return fields


def _check_object_keywords(place: Place) -> None:
    for key, value in place.items():
        if key in _UNCHECKED and key not in _OBJECT_KEYS:
            value.warn("SB206", f'"{key}" is not checked in this release')
    place.refuse_unknown((*_OBJECT_KEYS, *_UNCHECKED))
    extra = place.part("additionalProperties")
    if extra.value is not False and not extra.broken:
        extra.warn("SB206", "fields that are not declared are refused all the same")


def _list_required_names(place: Place) -> list[str]:
    listed = place.part("required")
    if not listed.is_array("an array of names"):
        return []
    return [name.value for name in listed.one_or_many() if name.text("a field's name") is not None]


def _check_name(name: str, place: Place) -> None:
    why = limits.check_field_name(name)
    if why is not None:
        place.error("SB107", f"the field name {quote(name)} {why}")


def _read_property(name: str, place: Place, required: bool = False) -> Field:
    """Read one property of a JSON Schema."""
    if not place.is_object("a JSON Schema", 'write {"type": "string"}'):
        return Field(name, ANY, place.path)
    _check_keywords(place)
    types = _read_types(place.part("type"))
    encrypted = _read_encrypted(place.part("encrypted"))
    return Field(
        name,
        types,
        place.path,
        initial=_read_default(place.part("default"), types),
        description=place.part("description").text() or "",
        required=required or place.value.get("required") is True,
        sensitive=bool(encrypted) or place.value.get("sensitive") is True,
        encrypted=encrypted,
    )


def _read_encrypted(place: Place) -> str:
    """Return how a field is encrypted: "" (not at all), "random" or "searchable"."""
    if place.broken or place.value is False:
        return ""
    if place.value is not True and place.value != SEARCHABLE:
        place.error("SB104", f"{quote(place.value)} says nothing of encryption", 'write true, or "searchable"')
    return SEARCHABLE if place.value == SEARCHABLE else RANDOM


def _check_keywords(place: Place) -> None:
    for key, value in place.items():
        if key in _UNCHECKED:
            value.warn("SB206", f'"{key}" is not checked in this release')
    place.refuse_unknown((*_KEYWORDS, *_UNCHECKED), _HINTS)
    required = place.part("required")
    if not isinstance(required.value, list):  # a list belongs to an object's own schema
        required.flag()
    place.part("sensitive").flag()


def _read_types(place: Place) -> tuple[str, ...]:
    if place.broken:
        return ANY
    types: list[str] = []
    for one in place.one_or_many():
        name = one.text("the name of a type", f"one of {', '.join(TYPES)}")
        if name is None:
            continue
        if name not in TYPES:
            one.error("SB104", f"no type {quote(name)}", f"one of {', '.join(TYPES)}")
        elif name not in types:
            types.append(name)
    return tuple(types) or ANY


def _read_default(place: Place, types: tuple[str, ...]) -> Any:
    if place.broken:
        return MISSING
    if not is_of_type(get_type(place.value), types):
        place.error("SB112", f"the default is {get_type(place.value)}, the field {describe_types(types)}")
        return MISSING
    value = _clean(place)
    return int(value) if isinstance(value, float) and "integer" in types and value.is_integer() else value


def read_events(place: Place) -> dict[str, Event]:
    """Read the declared events with their payloads."""
    if not place.is_object():
        return {}
    return {name: _read_event(name, event) for name, event in place.items()}


def _read_event(name: str, place: Place) -> Event:
    why = limits.check_external_event_name(name)
    if why is not None:
        place.report.add(
            "SB107", place.path, f"the event name {quote(name)} {why}", later=limits.is_reserved_event(name)
        )
    if not place.is_object("an object", 'write {} or {"description": "...", "payload": {...}}'):
        return Event(name, "", None, place.path)
    place.refuse_unknown(("description", "payload", "meta"), {"data": 'write "payload"', "fields": 'write "payload"'})
    payload = place.part("payload")
    fields = _read_payload(payload) if payload.is_object() else None
    return Event(name, place.part("description").text() or "", fields, place.path)


def _read_payload(place: Place) -> dict[str, Field]:
    if _is_object_schema(place.value):
        return _read_schema(place)
    return {name: _read_payload_field(name, field) for name, field in place.items()}


def _read_payload_field(name: str, place: Place) -> Field:
    """Read a schema or an example. An object is a schema if it has a ``type`` or nothing but schema keywords."""
    if not name or len(name) > limits.MAX_FIELD_NAME or not name.isprintable():
        place.error("SB107", f"a payload field's name must be 1 to {limits.MAX_FIELD_NAME} printable characters long")
    value = place.value
    if isinstance(value, dict) and ("type" in value or set(value) <= {*_KEYWORDS, *_UNCHECKED}):
        return _read_property(name, place)
    if place.broken:
        return Field(name, ANY, place.path)
    _check_example(place)
    return Field(name, infer_types(value), place.path)
