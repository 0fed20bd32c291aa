"""The whole config."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from machines.engine.definitions import Finding, outline
from machines.engine.definitions.place import PlainCopier
from machines.engine.definitions.report import Report
from machines.engine.definitions.scope import Tree
from machines.formats.xstate.dialect import DIALECT, MACHINE_KEYS, OURS

from .context import Writing
from .data import write_data
from .states import write_state
from .values import write_value


def write(definition: dict[str, Any]) -> tuple[str, list[Finding]]:
    """Raises DefinitionError for a definition that has errors."""
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
    """What has no other place: below ``meta``."""
    elsewhere = ("events", "context")
    kept = {key: document[key] for key in MACHINE_KEYS if key in document and key not in elsewhere}
    for key in kept:
        message = f'XState has no "{key}"; it stays below "meta", where only Signalbox reads it'
        writing.once("SB222", (key,), message)
    meta = {**document.get("meta", {}), **({OURS: kept} if kept else {})}
    return {"meta": meta} if meta else {}


def _events(states: dict[str, Any]) -> Iterator[str]:
    """What is listened for, raised or sent, anywhere below."""
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
