"""The cases of a folder: each ``X.scxml`` with its ``X.json``, or with states ``pass`` and ``fail`` of its own.

Some documents leave the verdict to whoever reads their log, and only end: such a one has no state ``pass`` but a final
state ``final``, and no other document names it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PASS, FAIL, FINAL = "pass", "fail", "final"
_FILE = re.compile(r"[\w.+-]+\.scxml")
_END = re.compile(r"""<\w*:?(final|state)\b[^<>]*\bid\s*=\s*["'](pass|final)["']""")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)

Names = frozenset[str]


class BadCase(Exception):
    """A case's own files cannot be read; the text says why."""


@dataclass(frozen=True, slots=True)
class Step:
    """Wait ``after`` ms, send the event, and be in ``expected``."""

    event: str
    data: Any
    after: int
    expected: Names


@dataclass(frozen=True, slots=True)
class Case:
    """One document. ``steps`` are walked from ``initial``; without ``initial`` the document must reach ``end``."""

    group: str
    name: str
    document: Path
    initial: Names | None = None
    steps: tuple[Step, ...] = ()
    end: str = PASS
    problem: str = ""


@dataclass(slots=True)
class Suite:
    """``name`` is the folder's; ``parts`` are documents that only other documents use or that end in no verdict."""

    name: str
    cases: list[Case] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)


def find(folder: Path) -> Suite:
    """Every case below a folder, by group and name."""
    root = folder.resolve()
    suite = Suite(root.name)
    paths = sorted(root.rglob("*.scxml"), key=_order)
    texts = {path: _COMMENT.sub("", path.read_text(encoding="utf-8", errors="replace")) for path in paths}
    named = {(path, name) for path, text in texts.items() for name in _FILE.findall(text)}
    for document, text in texts.items():
        group = document.parent.relative_to(root).as_posix()
        used = any(name == document.name and path != document for path, name in named)
        case = _case(group if group != "." else root.name, document, "" if used else _end(text))
        if case is None:
            suite.parts.append(document.relative_to(root).as_posix())
        else:
            suite.cases.append(case)
    return suite


def _end(text: str) -> str:
    """The state in which a document says that it went well; empty when it has none."""
    found = _END.findall(text)
    if any(id == PASS for _, id in found):
        return PASS
    return FINAL if ("final", FINAL) in found else ""


def _order(document: Path) -> tuple[str, list[tuple[int, int, str]]]:
    """``test9`` before ``test10``."""
    words = re.findall(r"\d+|\D+", document.stem)
    return str(document.parent), [(0, int(word), "") if word.isdigit() else (1, 0, word) for word in words]


def _case(group: str, document: Path, end: str) -> Case | None:
    sidecar = document.with_suffix(".json")
    if not sidecar.exists():
        return Case(group, document.stem, document, end=end) if end else None
    try:
        initial, steps = _script(json.loads(sidecar.read_text(encoding="utf-8")))
    except (ValueError, LookupError, TypeError, AttributeError, BadCase) as error:
        return Case(group, document.stem, document, problem=f"{sidecar.name} cannot be read: {error!r}")
    if end and not steps and initial == {end}:
        return Case(group, document.stem, document, end=end)
    return Case(group, document.stem, document, initial, steps)


def _script(script: dict[str, Any]) -> tuple[Names, tuple[Step, ...]]:
    steps = []
    for row in script.get("events", []):
        event = row["event"]
        steps.append(Step(event["name"], event.get("data"), int(row.get("after", 0)), _names(row["nextConfiguration"])))
    return _names(script["initialConfiguration"]), tuple(steps)


def _names(names: Iterable[str]) -> Names:
    if isinstance(names, str):
        raise BadCase(f"a configuration is a list of state names, not {names!r}")
    return frozenset(names)
