"""Writes DOT, as our own pages draw it."""

from collections.abc import Iterator
from typing import Any

from machines import diagrams
from machines.engine.definitions import Finding, outline
from machines.engine.definitions.findings import Path, make_finding, render

_MACHINE = {
    "context": "data fields",
    "events": "declared payloads",
    "output": "the machine's output",
    "history": "how many steps are kept",
    "retain": "how long instances are kept",
    "errors": "what happens when an action fails",
    "machines": "embedded machines",
    "queues": "limits of queues",
    "partitions": "how many partitions it has",
    "index": "indexed fields",
    "approval": "what takes a second person",
    "approvers": "who approves it",
    "accepts": "who may send to it",
    "schedules": "schedules",
    "properties": "properties to verify",
}
_STATE = {"description": "descriptions", "tags": "tags", "sla": "service levels"}
_INVOKE = {
    "input": "input",
    "retry": "retries",
    "lease": "a lease",
    "timeout": "a timeout",
    "priority": "priorities",
    "group": "groups of jobs",
    "weight": "groups of jobs",
    "delay": "delayed work",
    "unique": "unique keys",
    "autoforward": "forwarding",
    "finalize": "finalize",
}


def write(definition: dict[str, Any]) -> tuple[str, list[Finding]]:
    """Return the definition as a DOT graph. Raises DefinitionError for a definition that cannot be drawn."""
    shown = {key: value for key, value in definition.items() if key != "description"}
    return diagrams.dot(outline(definition)), omissions(shown, "a DOT graph")


def omissions(definition: dict[str, Any], format: str) -> list[Finding]:
    """Return one finding for each part of the machine, and one for each kind of property that its states have."""
    found = [((key,), what) for key, what in _MACHINE.items() if definition.get(key) not in (None, {}, [])]
    seen: set[str] = set()
    for path, what in _of_states(definition, ()):
        if what not in seen:
            seen.add(what)
            found.append((path, what))
    return [make_finding("SB222", render(path), f"{format} has no place for {what}") for path, what in found]


def _of_states(state: dict[str, Any], path: Path) -> Iterator[tuple[Path, str]]:
    for key, what in _STATE.items():
        if state.get(key):
            yield (*path, key), what
    initial = state.get("initial")
    if isinstance(initial, dict) and initial.get("actions"):
        yield (*path, "initial"), "the actions of an initial transition"
    invokes = state.get("invoke")
    for invoke in invokes if isinstance(invokes, list) else [invokes]:
        for key, what in _INVOKE.items():
            if isinstance(invoke, dict) and invoke.get(key):
                yield (*path, "invoke"), f"{what} of an invoke"
    if _says(state, "description"):
        yield path, "descriptions of transitions"
    if _says(state, "allow"):
        yield path, "groups that may send an event"
    for name, below in (state.get("states") or {}).items():
        if isinstance(below, dict):
            yield from _of_states(below, (*path, "states", name))


def _says(state: dict[str, Any], key: str) -> bool:
    """Return whether one of the state's transitions has the key."""
    homes = [state.get("always"), state.get("onDone")]
    for group in ("on", "after"):
        homes += (state.get(group) or {}).values()
    transitions = [one for home in homes for one in (home if isinstance(home, list) else [home])]
    return any(isinstance(one, dict) and one.get(key) for one in transitions)
