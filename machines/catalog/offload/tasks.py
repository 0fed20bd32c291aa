"""The tasks of helper processes, by name. A task takes texts and answers JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from machines.engine.definitions import CompiledDefinition, Finding

from ..submissions import Submission


@dataclass(frozen=True, slots=True)
class Done:
    """``cpu``: seconds of processor time it took."""

    answer: Any
    cpu: float


def _read(text: str | bytes, *, format: str, name: str = "", **wanted: bool) -> dict[str, Any]:
    """A text in a format, read and checked."""
    from .. import submissions

    return _told(submissions.read(text, format=format, name=name), **wanted)


def _check(text: str | bytes, **wanted: bool) -> dict[str, Any]:
    """A definition as JSON, checked like any submitted object."""
    return _told(Submission.of(json.loads(text)), **wanted)


def _draw(text: str | bytes, *, folds: Iterable[str] = (), full: bool = False) -> str:
    """The SVG of a definition as JSON."""
    from machines import diagrams
    from machines.engine.definitions import outline

    return diagrams.draw(outline(json.loads(text)), folds=frozenset(folds), full=full).svg


def _compare(text: str | bytes) -> dict[str, Any]:
    """The diagram of two definitions, as ``machines.diagrams.merge`` merges them: ``{"old": definition, "new":
    definition, "states": [...], "transitions": [...], "renamed": {...}}``."""
    from machines import diagrams
    from machines.diagrams.merge import merge
    from machines.engine.definitions import outline

    given = json.loads(text)
    words = {name: given[name] for name in ("states", "transitions", "renamed")}
    found = merge(outline(given["old"]), outline(given["new"]), **words)
    told = {"states": found.states, "transitions": found.transitions}
    return told | {"svg": diagrams.draw(found.outline).svg, "index": diagrams.index(found.outline)}


def _study(text: str | bytes, **wanted: Any) -> dict[str, Any]:
    """A text that somebody is writing, as ``machines.catalog.editing.checking.check`` answers it."""
    from ..editing.checking import check

    return check(text if isinstance(text, str) else text.decode("utf-8", "replace"), **wanted)


def _locate(text: str | bytes, *, format: str, paths: list[str]) -> list[list[int]]:
    """Where paths of a definition stand in its text, as ``editing.checking.locate_paths`` answers it."""
    from ..editing.checking import locate_paths

    return locate_paths(text if isinstance(text, str) else text.decode("utf-8", "replace"), format, paths)


def _told(found: Submission, *, whole: bool = False, drawn: bool = False) -> dict[str, Any]:
    """``whole``: with all that publishing it takes; ``drawn``: with its diagram."""
    from machines import diagrams

    findings = [asdict(finding) for finding in found.findings]
    told = {"definition": found.definition, "format": found.format, "findings": findings}
    if found.compiled is not None and whole:
        told["compiled"] = found.compiled.as_dict()
    if found.compiled is not None and drawn:
        told["drawing"] = diagrams.draw(found.compiled.outline).svg
    return told


TASKS: dict[str, Callable[..., Any]] = {
    "read": _read,
    "check": _check,
    "draw": _draw,
    "compare": _compare,
    "study": _study,
    "locate": _locate,
}


def submitted(done: Done) -> Submission:
    """What ``read`` and ``check`` answer."""
    told = done.answer
    findings = tuple(Finding(**finding) for finding in told["findings"])
    compiled = CompiledDefinition.from_dict(told["compiled"]) if "compiled" in told else None
    return Submission(told["definition"], findings, told["format"], compiled, told.get("drawing", ""))


def drawn(done: Done) -> str:
    """What ``draw`` answers."""
    return str(done.answer)
