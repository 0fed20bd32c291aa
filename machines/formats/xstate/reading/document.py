"""Reads a whole config: its name, its data, its events, and its states."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

from machines.engine import limits
from machines.engine.definitions.findings import Finding, make_finding
from machines.engine.definitions.place import Place, PlainCopier, TooLarge
from machines.engine.definitions.report import Path, Report, quote, render
from machines.formats.json import read as read_json
from machines.formats.text import stem
from machines.formats.xstate.context import Reading, Scope
from machines.formats.xstate.dialect import DIALECT, MACHINE_KEYS, OURS
from machines.formats.xstate.events import covering
from machines.formats.xstate.names import descriptor, machine_name
from machines.formats.xstate.source import exported_config, scripts
from machines.formats.xstate.source.serialized_machine import is_expanded, shorten
from machines.formats.xstate.target_tree import States

from . import data, states
from .values import read_value
from .version import sign_of_four

KNOWN = (
    *states.KNOWN,
    *("context", "schemas", "schema", "types", "queryLanguage", "$schema", "parallel", exported_config.SETUP),
)
_NAMELESS = "machine"
ONLY = "active"  # the state of a machine without states


class ConfigReport(Report):
    """Describes a piece of a script in the message where something else is expected."""

    def add(self, code: str, path: Path, message: str, hint: str = "", *, later: bool = False) -> None:
        if message.endswith("found text"):
            value = self.document
            for part in path:
                value = value[part] if isinstance(value, dict | list) else None
            if scripts.is_code(value):
                message = f"{message.removesuffix('text')}{scripts.describe(value)}"
        super().add(code, path, message, hint, later=later)


def read(text: str, base: str | FilePath | None = None) -> tuple[Any, list[Finding]]:
    """Return the definition and all findings. Next to an error, the definition is a draft to continue from."""
    config, findings = _config(text)
    if not isinstance(config, dict):
        return config, findings
    report = ConfigReport()
    if is_expanded(config):
        message = (
            "XState wrote this machine out: its always transitions and what its own actions do are not in the text"
        )
        report.add("SB224", (), message, "export the config that was given to createMachine")
        config = shorten(config, str(config.get("id")))
    try:
        report.document = PlainCopier(report.add).copy(config)
    except TooLarge:
        return None, [make_finding("SB111", "", f"the definition is larger than {limits.MAX_DEFINITION} bytes")]
    if report.has_errors:
        return None, [*findings, *report.findings()]
    definition = _definition(report.document, report, stem(base))
    return definition, [*findings, *report.findings()]


def _config(text: str) -> tuple[Any, list[Finding]]:
    """Return the config: JSON, or the object inside ``createMachine({...})``."""
    if exported_config.is_script(text):
        return exported_config.read(text)
    return read_json(text)


def _definition(config: dict[str, Any], report: Report, name: str) -> dict[str, Any]:
    place = Place(config, (), report)
    reading = _begin(place, report, name)
    scope = Scope(reading, reading.states.top)
    context = data.read_context(place, reading)
    body = states.inside(place, reading.states.top, reading)
    output = place.get("output")
    definition: dict[str, Any] = {"id": reading.machine}
    if states.kind_of(place) == "parallel":
        definition["type"] = "parallel"
    definition |= {key: place.value[key] for key in ("version",) if place.value.get(key) is not None}
    definition |= states.for_people(place)
    definition |= {
        "context": data.with_undeclared(context, reading, schema=data.has_schema(place)),
        "events": data.read_events(place, reading),
        "output": None if output is None else read_value(output, scope),
    }
    _check_root(place, body, reading)
    _begin_with(body, reading, parallel=definition.get("type") == "parallel")
    return _restore({key: value for key, value in (definition | body).items() if value not in (None, {})}, reading)


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
        body["entry"] = [first, *_as_list(body.get("entry"))]
    else:
        initial = body.get("initial")
        known = initial if isinstance(initial, dict) else {"target": initial}
        body["initial"] = {**known, "actions": [first, *_as_list(known.get("actions"))]}


def _as_list(found: Any) -> list[Any]:
    return [] if found is None else found if isinstance(found, list) else [found]


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
            reading.left_out(place.below(key), f'"{key}" is for TypeScript', 'declare data in "context" by example')
    language = place.value.get("queryLanguage")
    if language not in (None, DIALECT):
        message = f"expressions in {language} are read as far as JavaScript means the same"
        reading.report.add("SB224", ("queryLanguage",), message)


def _restore(definition: dict[str, Any], reading: Reading) -> dict[str, Any]:
    """Restore what the writer stored below ``meta``."""
    meta = definition.get("meta")
    ours = meta.get(OURS) if reading.ours and isinstance(meta, dict) else None
    if not isinstance(ours, dict):
        return definition
    others = {key: value for key, value in meta.items() if key != OURS}
    rest = {key: value for key, value in definition.items() if key != "meta"} | ({"meta": others} if others else {})
    return rest | {key: ours[key] for key in MACHINE_KEYS if key in ours}
