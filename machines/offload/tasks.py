"""What helpers can do, by name; and what their answers become here. Each takes a text and words, and answers JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from machines.engine.definitions import Finding
from machines.submission import Submission


@dataclass(frozen=True, slots=True)
class Done:
    """``cpu``: seconds of processor time it took."""

    answer: Any
    cpu: float


def _read(text: str | bytes, *, format: str, name: str = "") -> dict[str, Any]:
    """A text in a format, read and checked."""
    from machines import submission

    return _told(submission.read(text, format=format, name=name))


def _check(text: str | bytes) -> dict[str, Any]:
    """A definition as JSON, checked as an object that somebody sent."""
    from machines.engine.definitions import check

    definition = json.loads(text)
    return _told(Submission(definition, tuple(check(definition))))


def _draw(text: str | bytes, *, folds: Iterable[str] = ()) -> str:
    """The SVG of a definition as JSON."""
    from machines import diagrams
    from machines.engine.definitions import outline

    return diagrams.draw(outline(json.loads(text)), folds=frozenset(folds)).svg


def _told(found: Submission) -> dict[str, Any]:
    findings = [asdict(finding) for finding in found.findings]
    return {"definition": found.definition, "format": found.format, "findings": findings}


TASKS: dict[str, Callable[..., Any]] = {"read": _read, "check": _check, "draw": _draw}


def submitted(done: Done) -> Submission:
    """What ``read`` and ``check`` answer."""
    told = done.answer
    return Submission(told["definition"], tuple(Finding(**finding) for finding in told["findings"]), told["format"])


def drawn(done: Done) -> str:
    """What ``draw`` answers."""
    return str(done.answer)
