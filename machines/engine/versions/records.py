"""Records of the differences of two versions of a machine, and of what happens to instances that move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field
from typing import Any

from machines.engine.definitions.compiled import rebuild
from machines.engine.errors import BadInput

MOVES, KEPT, REFUSED, SUSPENDS = OUTCOMES = ("moves", "kept", "refused", "suspends")


@dataclass(frozen=True, slots=True)
class RefusedInstance:
    """One instance that a plan cannot move: ``version`` and ``state`` (leaf states, joined by ", ") are its own;
    ``code`` is stable, ``reason`` a sentence. Nothing of it was changed."""

    id: str
    version: int
    state: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class MigrationClass:
    """Instances to which a plan does the same: of one version, in one configuration, with the same pending work.

    ``pending``: ``jobs`` (invoke -> place), ``timers`` (event -> number), ``children`` (invokes), ``held`` (messages),
    ``suspended``, ``done``; what there is none of is left out. ``outcome``: one of OUTCOMES. ``target``: its leaves
    afterwards. ``effects``: what happens to the pending work and the data, a sentence each. ``code``, ``reason``: why
    it is refused, kept or suspended. ``examples``: ids, ten at most.
    """

    count: int
    version: int
    configuration: tuple[str, ...]
    outcome: str
    target: tuple[str, ...] = ()
    pending: Mapping[str, Any] = field(default_factory=dict)
    effects: tuple[str, ...] = ()
    code: str = ""
    reason: str = ""
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a plan would do to the whole fleet; nothing was changed. The counts of the classes add up to ``total``, the
    number of instances that were looked at, each once. ``refused``: every instance that would be refused; one that was
    read from a store may have the first ones only, ``refused_count`` is their number in any case."""

    total: int
    classes: list[MigrationClass]
    refused: list[RefusedInstance]

    @property
    def refused_count(self) -> int:
        """Return how many instances would be refused."""
        return sum(each.count for each in self.classes if each.outcome == REFUSED)

    def as_dict(self, refused: int | None = None) -> dict[str, Any]:
        """Return it as JSON-able data that ``from_dict`` takes. ``refused``: how many of the refused instances to list
        at most, for stores; by default all of them."""
        return {
            "total": self.total,
            "classes": [asdict(each) for each in self.classes],
            "refused_count": self.refused_count,
            "refused": [asdict(one) for one in self.refused[:refused]],
        }

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> DryRun:
        """Read what ``as_dict`` returned, also after a way through JSON. Raises BadInput for anything else."""
        try:
            made = rebuild(cls, {name: found[name] for name in ("total", "classes", "refused")})
        except (KeyError, TypeError, AttributeError) as error:
            raise BadInput(f"this is no dry run: {error!r}", code="SB624") from error
        if made.total != sum(each.count for each in made.classes):
            raise BadInput(f"this is no dry run: its classes do not add up to {made.total!r}", code="SB624")
        return made


@dataclass(frozen=True, slots=True)
class Migrated:
    """What a plan has done. ``moved``: instances that it moved; ``refused``: every instance that it could not move;
    ``kept``: those that it leaves where they are (of no version that the plan is for, without a place under
    ``unmapped="keep"``, or, on the way back, not brought by the plan); ``already``: those that had the new version
    before. ``stays``: version and why -> how many of those kept."""

    moved: int
    refused: list[RefusedInstance]
    kept: int = 0
    already: int = 0
    stays: Mapping[tuple[int, str], int] = field(default_factory=dict)


TRIMMED, OWN_VERSION = "trimmed", "own version"
UNTOLD = {
    "trimmed": "the history no longer begins with the creation of the instance",
    "creation": "the data that the instance was given cannot be told from its history",
    "payload": "the history did not keep the payload, which was too long or no object",
    "random": "the step drew random values that this version draws differently",
    "unknown step": "the step is of a kind that cannot be replayed, or of a version that is not known here",
    "timers": "timers of the replayed version would fire too often between two recorded steps",
    "own version": "the version that took the step does not repeat it from this history either",
}
"""Why recorded steps cannot be derived from a history: reason -> sentence."""


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """What a step did: the leaves afterwards, the transitions in order, and the data fields in which record and replay
    differ, with their values. ``error``: the step failed."""

    configuration: tuple[str, ...]
    transitions: tuple[str, ...]
    data: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class Divergence:
    """Recorded steps that end differently on the replayed version, each the first one of its instance.

    ``version``: the version that took them; ``configuration``: the leaves before; ``event``: as recorded; ``kinds``:
    what differs: "configuration", "transitions", "data", or "refused" (no transition is enabled), "failed" (an action
    fails), "timer" (a timer that only the replayed version has fires first). ``expected`` is the record and ``actual``
    the replay of ``example``, at its revision ``step`` and the moment ``at``; ``examples``: ids, ten at most.
    """

    count: int
    version: int
    configuration: tuple[str, ...]
    event: str
    kinds: tuple[str, ...]
    expected: StepOutcome
    actual: StepOutcome
    _: KW_ONLY
    example: str
    step: int
    at: int
    examples: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Return the leaves before the step as one line of text."""
        return ", ".join(self.configuration)


@dataclass(frozen=True, slots=True)
class Replay:
    """Recorded histories on a version; nothing was changed. ``version``: None for a definition that is not published.

    ``steps``: recorded steps that were run and compared; ``skipped``: those behind the first difference of their
    instance; ``untold``: reason (see UNTOLD) -> steps that the history does not tell enough about. The three add up to
    the recorded steps of ``instances``. The counts of ``divergences`` add up to the instances that differ.
    """

    machine: str
    version: int | None
    instances: int
    steps: int
    divergences: list[Divergence]
    untold: Mapping[str, int]
    skipped: int = 0

    @property
    def recorded(self) -> int:
        """Return the number of steps that the histories hold."""
        return self.steps + self.skipped + sum(self.untold.values())

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON-able data."""
        return asdict(self) | {"recorded": self.recorded}


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
