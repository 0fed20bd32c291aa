"""Reads scenario files. Strict: whatever is not known is a finding, and nothing of such a file is run."""

import difflib
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from machines.catalog.editing.places import Places, read_places
from machines.engine import limits
from machines.formats import text as texts
from machines.formats import yaml as yaml_format
from machines.testing.clock import read_duration

from .document import Finding, Scenario, ScenarioFile, Step, read_time

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
Add = Callable[..., None]  # code, path, message, hint
NOT_READ, TWICE = "SB670", "SB674"


@cache
def schema() -> Rule:
    """Return the JSON Schema of scenario files. The object is shared: do not change it."""
    found: Rule = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return found


def check(value: Any, rule: Rule, add: Add, path: str = "") -> None:
    """Report what is wrong with a value, and with all that it holds. ``rule``: a part of the schema."""
    choices = list(_list_choices(rule))
    fitting = [one for one in choices if _is_of_kind(value, one)]
    if len(fitting) > 1:  # of several mappings, the one whose own key is there
        known = {key: Rule() for one in fitting for key in one["properties"]}
        fitting = [one for one in fitting if one["required"][0] in value]
        if not fitting:
            _check_mapping(value, {"properties": known, "additionalProperties": False}, add, path)
    if len(fitting) != 1:
        expected = " or ".join(_name_choice(one, len(choices)) for one in choices)
        add(WRONG, path, f"{expected} is expected, found {_describe(value)}")
    elif isinstance(value, dict):
        _check_mapping(value, fitting[0], add, path)
    elif isinstance(value, list) and "items" in fitting[0]:
        if len(value) < fitting[0].get("minItems", 0):
            add(WRONG, path, "the list is empty", "begin each entry with a dash")
        for number, one in enumerate(value):
            check(one, fitting[0]["items"], add, f"{path}[{number}]")
    elif "pattern" in fitting[0] and not value.strip():
        add(WRONG, path, "the text is empty")


def _check_mapping(value: dict[str, Any], rule: Rule, add: Add, path: str) -> None:
    known: Rule = rule.get("properties", {})
    for key in value:
        place = f"{path}.{key}" if path else key
        if key in known:
            check(value[key], known[key], add, place)
        elif not rule.get("additionalProperties", True):
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"the keys here are {', '.join(known)}"
            add(UNKNOWN_KEY, place, f"the key {key!r} is not known here", hint)
    for key in rule.get("required", ()):
        if key not in value:
            add(MISSING, path, f"the key {key!r} is missing")
    if len(value) < rule.get("minProperties", 0):
        add(MISSING, path, f"at least one key is expected: {', '.join(known)}")
    ways = [key for one in rule.get("oneOf", ()) for key in one["required"]]
    found = [key for key in ways if key in value]
    if ways and len(found) != 1:
        add(WRONG if found else MISSING, path, f"one of the keys {' and '.join(ways)} is expected")


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


def read_text(text: str | bytes, path: Path | None = None) -> tuple[ScenarioFile | None, list[Finding]]:
    """Read the text of a file; return what it holds, None where anything is wrong, and all findings. Never raises."""
    decoded = texts.decode(text)
    if not isinstance(decoded, str):
        return None, [Finding(NOT_READ, 0, "", decoded.message, decoded.hint)]
    document, problems = yaml_format.read(decoded)
    if problems:
        return None, [Finding(NOT_READ, _line_of(one.path), "", one.message, one.hint) for one in problems]
    reader = _Reader(read_places(decoded, "yaml"))
    check(document, schema(), reader.add)
    file = None if reader.findings else reader.read_file(document, path)
    return (None if reader.findings else file), reader.findings


def _line_of(place: str) -> int:
    """Return the line of ``line 3, column 7``; 0 for another text."""
    words = place.removeprefix("line ").partition(",")[0]
    return int(words) if words.isdigit() else 0


class _Reader:
    """Checks what the schema does not say, and collects what is wrong."""

    def __init__(self, places: Places) -> None:
        self.findings: list[Finding] = []
        self._places = places

    def add(self, code: str, path: str, message: str, hint: str = "") -> None:
        self.findings.append(Finding(code, self._places.find_line(path), path, message, hint))

    def read_file(self, found: dict[str, Any], path: Path | None) -> ScenarioFile:
        """Read a document that has the form of the schema."""
        self._check_given(found.get("given", {}), "given")
        scenarios = tuple(
            self._scenario(one, f"scenarios[{number}]", found["machine"], found.get("given", {}))
            for number, one in enumerate(found["scenarios"])
        )
        seen: set[str] = set()
        for number, one in enumerate(scenarios):
            if one.name in seen:
                self.add(TWICE, f"scenarios[{number}].name", f"two scenarios are named {one.name!r}", "rename one")
            seen.add(one.name)
        return ScenarioFile(found["machine"], scenarios, path, self._places)

    def _scenario(self, found: dict[str, Any], path: str, machine: str, shared: dict[str, Any]) -> Scenario:
        own = found.get("given", {})
        self._check_given(own, f"{path}.given")
        data = {**shared.get("data", {}), **own.get("data", {})}
        given = {**shared, **own, "data": data, "events": [*shared.get("events", ()), *own.get("events", ())]}
        steps = tuple(self._step(one, f"{path}.steps[{number}]") for number, one in enumerate(found["steps"]))
        description, line = found.get("description", ""), self._places.find_line(path)
        return Scenario(found["name"], machine, given, steps, description, line)

    def _check_given(self, found: dict[str, Any], path: str) -> None:
        for number, one in enumerate(found.get("events", ())):
            self._check_when(one, f"{path}.events[{number}]")
        if "time" in found:
            self._check_number(read_time, found["time"], f"{path}.time")

    def _step(self, found: dict[str, Any], path: str) -> Step:
        when, then = found.get("when"), found.get("then")
        if when is not None:
            self._check_when(when, f"{path}.when")
        if then is not None and "refused" in then and "event" not in (when or {}):
            self.add(WRONG, f"{path}.then.refused", "only the event of the same step can be refused", "name it in when")
        return Step(when, then, self._places.find_line(path), path)

    def _check_when(self, found: dict[str, Any], path: str) -> None:
        if "after" in found:
            self._check_number(read_duration, found["after"], f"{path}.after")

    def _check_number(self, read: Callable[[Any], int], value: Any, path: str) -> None:
        try:
            if read(value) > limits.MAX_INTEGER:
                self.add(WRONG, path, "this is too far away")
        except ValueError as error:
            self.add(WRONG, path, str(error))
