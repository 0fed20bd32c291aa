"""Compares the names in a scenario file with the definition that it runs, before the run."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator

from machines.engine.definitions import Outline

from .document import Finding, ScenarioFile, When
from .expectations import describe_transition

UNKNOWN_NAME = "SB675"


def check_names(file: ScenarioFile, outline: Outline) -> list[Finding]:
    """List the states, data fields and transitions of a file that the machine does not have."""
    return [
        Finding(UNKNOWN_NAME, file.find_line(path), path, f"{file.machine} has no {what} {name!r}", _hint(name, known))
        for path, what, name, known in _list_names(file, outline)
        if name not in known
    ]


def _list_names(file: ScenarioFile, outline: Outline) -> Iterator[tuple[str, str, str, Collection[str]]]:
    """List path, what it is, the name, and the names there are."""
    fields = {field.name for field in outline.data}
    states = {state.name for state in outline.states} | {state.path for state in outline.states}
    transitions = [one for state in outline.states for one in state.transitions]
    known = {one.id for one in transitions} | {describe_transition(one) for one in transitions}
    for number, scenario in enumerate(file.scenarios):
        for name in scenario.given.data:
            yield f"scenarios[{number}].given.data.{name}", "data field", name, fields
        for step in scenario.steps:
            if step.then is None:
                continue
            for name in step.then.states:
                yield f"{step.path}.then.state", "state", name, states
            for name in step.then.data or ():
                yield f"{step.path}.then.data.{name}", "data field", name, fields
            for name in step.then.transitions or ():
                yield f"{step.path}.then.transitions", "transition", name, known
            if step.when is not None and step.when.kind == "job":
                yield from _list_jobs(step.when, f"{step.path}.when.job", outline)


def _list_jobs(when: When, path: str, outline: Outline) -> Iterator[tuple[str, str, str, Collection[str]]]:
    if when.machine in ("", outline.id) and not any(one.machine for state in outline.states for one in state.invokes):
        invokes = [one for state in outline.states for one in state.invokes]
        names = {one.id for one in invokes} | {one.src for one in invokes}
        if not any(state.enqueues for state in outline.states) and names:
            yield path, "invoke or handler", when.name, names


def _hint(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"it has {', '.join(sorted(known))}" if 0 < len(known) <= 20 else ""
