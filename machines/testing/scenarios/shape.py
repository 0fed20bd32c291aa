"""Compares a value with the JSON Schema of scenario files, as far as these use JSON Schema."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

SCHEMA = Path(__file__).with_name("schema.json")
UNKNOWN_KEY, MISSING, WRONG = "SB671", "SB672", "SB673"
KINDS = {
    "object": ((dict,), "a mapping"),
    "array": ((list,), "a list"),
    "string": ((str,), "a text"),
    "boolean": ((bool,), "true or false"),
    "number": ((int, float), "a number"),
}
Rule = dict[str, Any]


class Fault(NamedTuple):
    """What is wrong at a path."""

    code: str
    path: str
    message: str
    hint: str = ""


@cache
def schema() -> Rule:
    """Return the JSON Schema of scenario files. The object is shared: do not change it."""
    found: Rule = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return found


def find_faults(value: Any, rule: Rule, path: str = "") -> Iterator[Fault]:
    """List what is wrong with a value, and with all that it holds. ``rule``: a part of the schema."""
    choices = list(_list_choices(rule))
    fitting = [one for one in choices if _is_of_kind(value, one)]
    if len(fitting) > 1:  # of several mappings, the one whose own key is there
        known = {key: Rule() for one in fitting for key in one["properties"]}
        fitting = [one for one in fitting if one["required"][0] in value]
        if not fitting:
            yield from _find_in_mapping(value, {"properties": known, "additionalProperties": False}, path)
    if len(fitting) != 1:
        expected = " or ".join(_name_choice(one, len(choices)) for one in choices)
        yield Fault(WRONG, path, f"{expected} is expected, found {_describe(value)}")
    elif isinstance(value, dict):
        yield from _find_in_mapping(value, fitting[0], path)
    elif isinstance(value, list):
        if len(value) < fitting[0].get("minItems", 0):
            yield Fault(WRONG, path, "the list is empty", "begin each entry with a dash")
        for number, one in enumerate(value):
            yield from find_faults(one, fitting[0]["items"], f"{path}[{number}]")
    elif "pattern" in fitting[0] and not value.strip():
        yield Fault(WRONG, path, "the text is empty")


def _find_in_mapping(value: dict[str, Any], rule: Rule, path: str) -> Iterator[Fault]:
    known: Rule = rule.get("properties", {})
    for key in value:
        place = f"{path}.{key}" if path else key
        if key in known:
            yield from find_faults(value[key], known[key], place)
        elif not rule.get("additionalProperties", True):
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"the keys here are {', '.join(known)}"
            yield Fault(UNKNOWN_KEY, place, f"the key {key!r} is not known here", hint)
    for key in rule.get("required", ()):
        if key not in value:
            yield Fault(MISSING, path, f"the key {key!r} is missing")
    if len(value) < rule.get("minProperties", 0):
        yield Fault(MISSING, path, f"at least one key is expected: {', '.join(known)}")
    ways = [key for one in rule.get("oneOf", ()) for key in one["required"]]
    found = [key for key in ways if key in value]
    if ways and len(found) != 1:
        yield Fault(WRONG if found else MISSING, path, f"one of the keys {' and '.join(ways)} is expected")


def _list_choices(rule: Rule) -> Iterator[Rule]:
    """List the rules that a value may follow, without references."""
    if "$ref" in rule:
        rule = schema()["$defs"][rule["$ref"].rpartition("/")[2]]
    if "type" in rule or "oneOf" not in rule:
        yield rule
    else:
        for one in rule["oneOf"]:
            yield from _list_choices(one)


def _is_of_kind(value: Any, rule: Rule) -> bool:
    if "const" in rule:
        return value is rule["const"]
    return "type" not in rule or type(value) in KINDS[rule["type"]][0]


def _name_choice(rule: Rule, among: int) -> str:
    if "const" in rule:
        return "true"
    own = f" with {rule['required'][0]}" if among > 1 and "required" in rule else ""
    return KINDS[rule["type"]][1] + own


def _describe(value: Any) -> str:
    if isinstance(value, dict):
        return f"a mapping with {' and '.join(value)}" if value else "an empty mapping"
    return next((word for kinds, word in KINDS.values() if type(value) in kinds), "nothing")
