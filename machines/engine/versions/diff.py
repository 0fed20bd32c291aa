"""The differences of two versions of a machine."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

COMPATIBLE, NEEDS_MAPPING, CHANGES = EFFECTS = ("compatible", "needs a mapping", "changes what runs")
KINDS = ("state", "transition", "guard", "action", "data", "timer", "invoke", "queue", "machine")
VERBS = ("added", "removed", "changed", "renamed")
Part = tuple[str, str]  # "states", "transitions" or "queues", and the name or id there


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. ``kind``: one of KINDS; ``verb``: of VERBS; ``path``: its place, in the new version where it is
    there. ``before``, ``after``: both sides as text, empty for none.

    ``verdict``: "compatible" (instances move by themselves and run as before), "needs a mapping" (a plan has to say
    something about it) or "changes what runs"; ``reason`` is a sentence. ``match``: how both sides were found to be one
    thing: "id", "path", "shape", or empty where there is one side. ``old_part``, ``new_part``: what stands for it on a
    diagram of the old and of the new version, as ("states", name), ("transitions", id) or ("queues", name).
    """

    kind: str
    verb: str
    path: str
    before: str
    after: str
    verdict: str
    reason: str
    match: str = ""
    old_part: Part | None = field(default=None, kw_only=True)
    new_part: Part | None = field(default=None, kw_only=True)

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON-able data."""
        parts = {"old_part": list(self.old_part or ()) or None, "new_part": list(self.new_part or ()) or None}
        return asdict(self) | parts

    def __str__(self) -> str:
        sides = " -> ".join(filter(None, (self.before, self.after)))
        return f"{self.verb} {self.kind} {self.path}{f': {sides}' if sides else ''} ({self.verdict}: {self.reason})"


@dataclass(frozen=True, slots=True)
class DefinitionDiff:
    """The differences of version ``a`` and version ``b`` of a machine; None is a draft. ``changes``: in the order of
    the document. ``text``: a unified diff of both definitions as JSON.

    ``old_parts`` and ``new_parts``: "states", "transitions" and "queues" -> name or id -> verb, for a diagram of each
    version; ``machines.diagrams.list_changed_parts`` turns them into the ids of its parts.
    """

    machine: str
    a: int | None
    b: int | None
    changes: list[Change]
    text: str
    old_parts: dict[str, dict[str, str]]
    new_parts: dict[str, dict[str, str]]

    @property
    def verdict(self) -> str:
        """Return the gravest verdict: "needs a mapping", else "changes what runs", else "compatible"."""
        found = {change.verdict for change in self.changes}
        return next((verdict for verdict in (NEEDS_MAPPING, CHANGES) if verdict in found), COMPATIBLE)

    @property
    def counts(self) -> dict[str, int]:
        """Return verdict -> number of changes."""
        found = Counter(change.verdict for change in self.changes)
        return {verdict: found[verdict] for verdict in EFFECTS}

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON-able data."""
        names = ("machine", "a", "b", "verdict", "counts", "text", "old_parts", "new_parts")
        changes = [change.as_dict() for change in self.changes]
        return {name: getattr(self, name) for name in names} | {"changes": changes}
