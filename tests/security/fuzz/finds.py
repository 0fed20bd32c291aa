"""Inputs that once broke a promise: each a file of its own, played by the suite for good."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from .cases import Case
from .runner import Report

FOLDER = Path(__file__).parent / "finds"


@dataclass(frozen=True, slots=True)
class Find:
    """``why``: what was wrong with it when it was found."""

    name: str
    kind: str
    why: str
    case: Case


def saved(folder: Path = FOLDER) -> list[Find]:
    found = []
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        found.append(Find(path.stem, content["kind"], content["why"], content["case"]))
    return found


def save(folder: Path, kind: str, seed: int, report: Report) -> None:
    """Writes down what was wrong in a run."""
    folder.mkdir(parents=True, exist_ok=True)
    for wrong in report.wrong:
        content = {"kind": kind, "why": wrong.why[0].splitlines()[-1][:300], "case": wrong.case}
        text = json.dumps(content, indent=1, ensure_ascii=True)
        (folder / f"{kind}-{seed}-{wrong.index}.json").write_text(text + "\n", encoding="utf-8")
