"""Says what a schema of the OpenAPI document is."""

import json
from collections.abc import Mapping
from typing import Any

REF = "#/components/schemas/"
DEEP = 3  # lists in lists that a type's name spells out


def describe_type(schema: Mapping[str, Any], depth: int = 0) -> str:
    """Describe a type in words: ``text``, ``list of InstanceOut``, ``whole number or null``."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(REF)
    if "enum" in schema:
        return " | ".join(json.dumps(one).strip('"') or "(empty)" for one in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(describe_type(one, depth) for one in schema["anyOf"]))
    kind = schema.get("type", "anything")
    if kind == "array" and depth < DEEP:
        return f"list of {describe_type(schema.get('items', {}), depth + 1)}"
    names = {"string": "text", "integer": "whole number", "boolean": "true or false", "array": "list"}
    return names.get(kind, kind)


def find_name(schema: Mapping[str, Any]) -> str:
    """Return the name of the schema that this one refers to, itself or through its items; "" if there is none."""
    found = schema.get("$ref") or schema.get("items", {}).get("$ref")
    if not found:
        found = next((one["$ref"] for one in schema.get("anyOf", ()) if "$ref" in one), "")
    return str(found).removeprefix(REF)


def describe_default(schema: Mapping[str, Any]) -> str:
    """Return the default value as JSON; "" for none."""
    default = schema.get("default")
    return "" if default in (None, "") else json.dumps(default).strip('"')
