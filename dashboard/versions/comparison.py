"""Compares two versions of a machine, or a draft with a version: the changes, in colours on a diagram, and as text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from django.http import Http404
from django.utils.safestring import SafeString

from dashboard.shared.addresses import parse_number
from dashboard.shared.permissions import find_of_machine
from dashboard.shared.redacted_engine import RedactedEngine
from dashboard.shared.version_view import Overlay
from machines import diagrams
from machines.catalog import offload
from machines.catalog.queries import get_version
from machines.engine.versions import DefinitionDiff
from machines.people.actor import Actor
from machines.versions import drafts

REMOVED = "removed"
SIGNS = {"added": "+", REMOVED: "−", "renamed": "≈", "changed": "~"}
PARTS = ("states", "transitions")
VAST = 30  # states of a diagram that is not scaled to the page
EFFECTS = ("needs a mapping", "changes what runs", "compatible")
DRAFT = "draft-"  # before the number of a draft in an address
DRAWING_CPU = 5.0  # seconds of processor time that one diagram may take
MAX_CACHED = 32  # diagrams in the memory of a process
TEXT_LINES = 2_000  # of the text diff on a page


@dataclass(frozen=True, slots=True)
class Side:
    """Holds one of the two: a published version, or a draft. ``name``: as in an address; ``label``: for people."""

    name: str
    label: str
    definition: dict[str, Any]
    version: int | None = None
    draft: int | None = None

    @property
    def reference(self) -> int | dict[str, Any]:
        """Return what ``Engine.diff`` takes."""
        return self.definition if self.version is None else self.version


@dataclass(frozen=True, slots=True)
class Line:
    """Holds a line of the text diff. ``kind``: added, removed, place or same."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class ComparisonDiagram:
    """Holds the diagram of both versions. ``counts``: how many states and transitions have each mark."""

    drawing: SafeString
    counts: list[tuple[str, str, int]]
    is_vast: bool = False
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """Holds the changes of one verdict."""

    verdict: str
    rows: list[Any] = field(default_factory=list)


def read_side(actor: Actor, machine: str, name: str) -> Side:
    """Read ``2`` or ``draft-7``. Raise Http404, UnknownMachine, Forbidden for a draft without the right to publish."""
    if name.startswith(DRAFT):
        number = name.removeprefix(DRAFT)
        draft = find_of_machine(lambda: drafts.get(actor, parse_number(number) or 0), machine, "draft")
        found = drafts.read(actor, draft)
        if found.definition is None:
            raise Http404(f"Draft {number} cannot be read: see its findings.")
        return Side(name, f"draft {number}", found.definition, draft=draft.pk)
    version = parse_number(name)
    if not version or version not in RedactedEngine(actor).versions(machine):
        raise Http404(f"Machine {machine} has no version {name[:20]}.")
    row = get_version(machine, version, without=("drawing",))
    return Side(name, f"version {name}", row.definition, version=version)


def group_changes(diff: DefinitionDiff) -> list[Changes]:
    """Group the changes by verdict, those that need something first."""
    found = {verdict: Changes(verdict) for verdict in EFFECTS}
    for change in diff.changes:
        found.setdefault(change.verdict, Changes(change.verdict)).rows.append(change)
    return [group for group in found.values() if group.rows]


def list_lines(text: str) -> tuple[list[Line], int]:
    """Return the first lines of a text diff, and how many are left out."""
    lines = text.splitlines()
    return [Line(_name_kind(line), line) for line in lines[:TEXT_LINES]], max(0, len(lines) - TEXT_LINES)


def _name_kind(line: str) -> str:
    if line.startswith("@@"):
        return "place"
    if line.startswith(("+++", "---")):
        return "file"
    return {"+": "added", "-": "removed"}.get(line[:1], "same")


def find_renamed(diff: DefinitionDiff) -> dict[str, str]:
    """Return old name -> new name of the states whose name differs."""
    pairs = [(change.old_part, change.new_part) for change in diff.changes]
    both = [(old, new) for old, new in pairs if old and new and old[0] == new[0] == "states"]
    return {old[1]: new[1] for old, new in both if old[1] != new[1]}


def draw(old: Side, new: Side, diff: DefinitionDiff, *, who: str) -> ComparisonDiagram:
    """Draw both versions as one diagram, each change marked by a colour, a sign and a line of its own."""
    removed = {kind: [n for n, verb in diff.old_parts[kind].items() if verb == REMOVED] for kind in PARTS}
    given = {"old": old.definition, "new": new.definition, "renamed": find_renamed(diff), **removed}
    try:
        drawn = _merge(json.dumps(given, ensure_ascii=False), who)
    except offload.OffloadError as error:
        return ComparisonDiagram(SafeString(""), [], missing=str(error))
    overlay, found = Overlay(), []
    for kind, slots in zip(PARTS, (overlay.counts, overlay.flows), strict=True):
        marks = diff.new_parts[kind] | dict.fromkeys(drawn[kind].values(), REMOVED)
        for name, mark in marks.items():
            found.append(mark)
            if part := drawn["index"][kind].get(name):
                overlay.mark(part, f"diff-{mark}")
                slots[part] = SIGNS[mark]
    counts = [(mark, sign, found.count(mark)) for mark, sign in SIGNS.items()]
    return ComparisonDiagram(overlay.draw_on(drawn["svg"]), counts, is_vast=len(drawn["index"]["states"]) > VAST)


def describe(engine: RedactedEngine, old: Side, new: Side, machine: str, *, who: str) -> dict[str, Any]:
    """Return the context of a comparison: the diagram, the changes by verdict, the text."""
    diff = engine.diff(machine, old.reference, new.reference)
    groups = group_changes(diff)
    lines, left = list_lines(diff.text)
    return {
        "old": old, "new": new, "groups": groups, "lines": lines, "lines_left": left,
        "effects": [(group.verdict, len(group.rows)) for group in groups],
        "overlay": draw(old, new, diff, who=who),
    }  # fmt: skip


def list_sides(actor: Actor, machine: str, numbers: Iterable[int]) -> list[tuple[str, str]]:
    """List what can be compared: versions, and open drafts for those who may publish."""
    found = [(str(number), f"version {number}") for number in numbers]
    if actor.may("publish", machine):
        found += [(f"{DRAFT}{draft.pk}", f"draft {draft.pk}") for draft in drafts.list_drafts(actor, machine)]
    return found


def _merge(text: str, who: str) -> dict[str, Any]:
    """Draw in a helper process, once in this process."""
    kept = _make_entry(text, diagrams.DRAWING)
    if not kept:
        kept.append(offload.run("compare", text, who=who, cpu=DRAWING_CPU).answer)
    return kept[0]


@lru_cache(maxsize=MAX_CACHED)
def _make_entry(text: str, way: int) -> list[dict[str, Any]]:
    """Return the cache entry, empty at first. ``way``: the version of the drawing code."""
    return []
