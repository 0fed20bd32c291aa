"""Writes DOT, as our own pages draw it."""

from collections.abc import Iterator
from typing import Any

from machines import diagrams
from machines.engine.definitions import Finding, outline
from machines.engine.definitions.findings import Path, make_finding, quote, render
from machines.formats.text import INVOKE_SETTINGS, MACHINE_SETTINGS

_MACHINE = ("context", "events", "output", "errors", "machines", *MACHINE_SETTINGS)
_STATE = ("description", "tags", "sla")
_INVOKE = ("input", *INVOKE_SETTINGS)
_TRANSITION = ("description", "allow")


def write(definition: dict[str, Any]) -> tuple[str, list[Finding]]:
    """Return the definition as a DOT graph. Raises DefinitionError for a definition that cannot be drawn."""
    shown = {key: value for key, value in definition.items() if key != "description"}
    return diagrams.dot(outline(definition)), omissions(shown, "a DOT graph")


def omissions(definition: dict[str, Any], format: str) -> list[Finding]:
    """Return a finding for each key that the format leaves out, at its first place."""
    found: dict[str, Path] = {quote(key): (key,) for key in _MACHINE if definition.get(key) not in (None, {}, [])}
    for path, what in _select_states(definition, ()):
        found.setdefault(what, path)
    return [make_finding("SB222", render(path), f"{format} has no place for {what}") for what, path in found.items()]


def _select_states(state: dict[str, Any], path: Path) -> Iterator[tuple[Path, str]]:
    for key in _STATE:
        if state.get(key):
            yield (*path, key), f"{quote(key)} of a state"
    initial = state.get("initial")
    if isinstance(initial, dict) and initial.get("actions"):
        yield (*path, "initial"), "the actions of an initial transition"
    groups = [(state.get("on") or {}).values(), (state.get("after") or {}).values()]
    moves = [state.get("always"), state.get("onDone"), *(home for group in groups for home in group)]
    for kind, keys, found in (("an invoke", _INVOKE, [state.get("invoke")]), ("a transition", _TRANSITION, moves)):
        parts = [one for home in found for one in (home if isinstance(home, list) else [home]) if isinstance(one, dict)]
        for key in keys:
            if any(one.get(key) for one in parts):
                yield path, f"{quote(key)} of {kind}"
    for name, below in (state.get("states") or {}).items():
        if isinstance(below, dict):
            yield from _select_states(below, (*path, "states", name))
