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
    """Read and check a text in a format."""
    from .. import submissions

    return _encode_submission(submissions.read(text, format=format, name=name), **wanted)


def _check(text: str | bytes, **wanted: bool) -> dict[str, Any]:
    """Return a definition as JSON, checked like any submitted object."""
    return _encode_submission(Submission.of(json.loads(text)), **wanted)


def _draw(text: str | bytes, *, folds: Iterable[str] = (), full: bool = False) -> str:
    """Return the SVG of a definition as JSON."""
    from machines import diagrams
    from machines.engine.definitions import outline

    return diagrams.draw(outline(json.loads(text)), folds=frozenset(folds), full=full).svg


def _compare(text: str | bytes) -> dict[str, Any]:
    """Return the diagram of two definitions, as ``machines.diagrams.merge`` merges them: ``{"old": definition, "new":
    definition, "states": [...], "transitions": [...], "renamed": {...}}``."""
    from machines import diagrams
    from machines.diagrams.merge import merge
    from machines.engine.definitions import outline

    given = json.loads(text)
    words = {name: given[name] for name in ("states", "transitions", "renamed")}
    found = merge(outline(given["old"]), outline(given["new"]), **words)
    facts = {"states": found.states, "transitions": found.transitions}
    return facts | {"svg": diagrams.draw(found.outline).svg, "index": diagrams.index(found.outline)}


def _study(text: str | bytes, **wanted: Any) -> dict[str, Any]:
    """Return a text that somebody is writing, as ``machines.catalog.editing.checking.check`` answers it."""
    from ..editing.checking import check

    return check(text if isinstance(text, str) else text.decode("utf-8", "replace"), **wanted)


def _locate(text: str | bytes, *, format: str, paths: list[str]) -> list[list[int]]:
    """Return where paths of a definition stand in its text, as ``editing.checking.locate_paths`` answers it."""
    from ..editing.checking import locate_paths

    return locate_paths(text if isinstance(text, str) else text.decode("utf-8", "replace"), format, paths)


def _encode_submission(found: Submission, *, whole: bool = False, drawn: bool = False) -> dict[str, Any]:
    """Encode a submission. ``whole``: with all that publishing it takes; ``drawn``: with its diagram."""
    from machines import diagrams

    findings = [asdict(finding) for finding in found.findings]
    facts = {"definition": found.definition, "format": found.format, "findings": findings}
    if found.compiled is not None and whole:
        facts["compiled"] = found.compiled.as_dict()
    if found.compiled is not None and drawn:
        facts["drawing"] = diagrams.draw(found.compiled.outline).svg
    return facts


TASKS: dict[str, Callable[..., Any]] = {
    "read": _read,
    "check": _check,
    "draw": _draw,
    "compare": _compare,
    "study": _study,
    "locate": _locate,
}


def read_submission(done: Done) -> Submission:
    """Return what ``read`` and ``check`` answer."""
    facts = done.answer
    findings = tuple(Finding(**finding) for finding in facts["findings"])
    compiled = CompiledDefinition.from_dict(facts["compiled"]) if "compiled" in facts else None
    return Submission(facts["definition"], findings, facts["format"], compiled, facts.get("drawing", ""))


def read_drawing(done: Done) -> str:
    """Return what ``draw`` answers."""
    return str(done.answer)
