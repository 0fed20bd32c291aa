"""Presents the versions of a machine, what differs between two, and migration plans with their dry runs."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any

from django.http import Http404
from django.utils.safestring import SafeString

from dashboard.shared.addresses import parse_number
from dashboard.shared.counts import VersionCount, VersionCounts
from dashboard.shared.csv_export import Columns
from dashboard.shared.permissions import find_of_machine
from dashboard.shared.redacted_engine import RedactedEngine
from dashboard.shared.version_view import Overlay, load_versions_of
from machines import diagrams
from machines.audit.redaction import MASK
from machines.catalog import offload
from machines.catalog.queries import get_version
from machines.catalog.version_rules import ACTIONS, read_policy
from machines.catalog.versions import comparison, drafts, rollouts
from machines.engine import DefinitionDiff, Live, LookupFailed, VersionFigures
from machines.engine.versions.records import OUTCOMES, DryRun, MigrationClass
from machines.instances import plans
from machines.instances.bulks.store import OrderLost
from machines.models import MachineVersion, StoredPlan
from machines.people.actor import Actor

from .plan_form import Choices, PlanForm

SAME = "same name"  # the reason of a place that needs no look
SHOWN_REFUSED = 50  # instances on the page; the file has all that are kept
PER_SECOND = 11_000  # instances that a dry run looks at in a second, at a third of the server
COLUMNS: Columns = {"instance": attrgetter("id")} | {
    name: attrgetter(name) for name in ("version", "state", "code", "reason")
}


@dataclass(frozen=True, slots=True)
class VersionRow:
    """Holds one version. ``figures``: of the engine; ``published_at``, ``published_by`` and ``notes``: from the
    catalog, empty for a version that only Redis has; ``slowest``: state and median ms of the longest time in a state.
    """

    count: VersionCount
    figures: VersionFigures
    published_at: datetime | None = None
    published_by: str = ""
    notes: str = ""
    slowest: tuple[str, int] | None = None

    @property
    def version(self) -> int:
        return self.count.version

    @property
    def refused_share(self) -> str:
        """Return the refused part of what was tried: ``2.5 %``; empty while nothing was tried."""
        tried = self.figures.attempts.tried
        return f"{100 * self.figures.refusals / tried:.1f} %" if tried else ""


def list_versions(actor: Actor, machine: str, versions: VersionCounts) -> list[VersionRow]:
    """List the versions, newest first."""
    fields = ("number", "published_at", "published_by__username", "notes")
    known = {row[0]: row[1:] for row in MachineVersion.objects.filter(machine__name=machine).values_list(*fields)}
    figures = {each.version: each for each in rollouts.figures(actor, machine)}
    return [
        _make_row(
            count, figures.get(count.version, VersionFigures(count.version, count.instances)), known.get(count.version)
        )
        for count in versions.rows
    ]


def _make_row(
    count: VersionCount, figures: VersionFigures, facts: tuple[datetime, str | None, str] | None
) -> VersionRow:
    times = {state: time.median for state, time in figures.times.items() if time.sampled}
    state = max(times, key=lambda name: times[name], default="")
    slowest = (state, times[state]) if state else None
    if facts is None:
        return VersionRow(count, figures, slowest=slowest)
    published_at, published_by, notes = facts
    return VersionRow(count, figures, published_at, published_by or "", notes, slowest)


def present_choice(actor: Actor, machine: str) -> dict[str, Any]:
    """Return the context of what decides about new instances: roll-out, pin, withdrawn versions, and which changes of
    that take a second person."""
    found, held = rollouts.get(actor, machine), read_policy(machine)
    return {
        "rollout": found.rollout, "pinned": found.pin, "withdrawn": found.withdrawn,
        "rules": rollouts.find_rules(machine), "policy": [(name, held.get(name)) for name in ACTIONS],
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClassRow:
    """Holds a class of a dry run. ``pending``: what waits for its instances, in words."""

    of: MigrationClass
    pending: list[str]


Delays = Mapping[int, Mapping[str, str]]
"""Version -> event of a timer -> what people call it."""


def describe_pending(of: MigrationClass, delays: Delays) -> list[str]:
    """Describe pending work: ``["job pick ready", "timer 45s of On its way", "2 held messages", "suspended"]``."""
    pending, known = of.pending, delays.get(of.version, {})
    words = [f"job {invoke} {place}" for invoke, place in (pending.get("jobs") or {}).items()]
    for event, number in (pending.get("timers") or {}).items():
        words.append(f"timer {known.get(event, event)}" + (f" × {number}" if number != 1 else ""))
    words += [f"child {invoke}" for invoke in pending.get("children") or ()]
    if held := pending.get("held"):
        words.append(f"{held} held message{'s' if held != 1 else ''}")
    return words + [word for word, name in (("suspended", "suspended"), ("ended", "done")) if pending.get(name)]


def name_timers(machine: str, versions: Iterable[int]) -> Delays:
    """Name the timers of versions by their delay and state."""
    found: dict[int, dict[str, str]] = {}
    for number, view in load_versions_of(machine, list(versions)).items():
        timers = [(t, state) for state in view.outline.states for t in state.transitions if t.delay]
        found[number] = {event: f"{t.delay} of {state.name}" for t, state in timers for event in t.events}
    return found


@dataclass(frozen=True, slots=True)
class Stage:
    """Holds a stage of a plan. ``state``: done, now or later."""

    label: str
    state: str

    @property
    def sign(self) -> str:
        return {"done": "✓", "now": "●", "later": "○"}[self.state]


def list_stages(stored: StoredPlan, *, moved: bool) -> list[Stage]:
    """List the stages of a plan, the one that is next marked as now. ``moved``: its bulk action is over."""
    done = [True, stored.dry_run is not None or bool(stored.bulk), bool(stored.bulk), moved]
    labels = ["Plan", "Dry run", "Move", "Done"]
    next_at = done.index(False) if False in done else len(done)
    states = ["done" if at < next_at else "now" if at == next_at else "later" for at in range(len(done))]
    return [Stage(label, state) for label, state in zip(labels, states, strict=True)]


def present_plan(actor: Actor, stored: StoredPlan, live: Live) -> dict[str, Any]:
    """Return the context of a stored plan's page, redacted."""
    found, progress = read_dry_run(actor, stored), plans.progress(actor, stored)
    moved = stored.outcome is not None or (progress.bulk is not None and progress.bulk.done)
    older = max(source["version"] for source in stored.plan["sources"])
    context: dict[str, Any] = {
        "stored": stored, "plan": comparison.hide_document(actor, stored.plan),
        "dry_run": found, "stages": list_stages(stored, moved=moved), "progress": progress,
        "time_said": estimate_time(live.total),
        "older": older, "gives_others": rollouts.gives_others(stored.machine, older),
        "policies": describe_policies(stored.plan), "mappings": list_mappings(stored.plan),
    }  # fmt: skip
    if found is None:
        return context
    delays = name_timers(stored.machine, {each.version for each in found.classes})
    return context | {
        "classes": [ClassRow(each, describe_pending(each, delays)) for each in found.classes],
        "outcomes": [(word, n) for word in OUTCOMES if (n := sum(c.count for c in found.classes if c.outcome == word))],
        "refused_count": found.refused_count,
        "refused_rows": found.refused[:SHOWN_REFUSED],
    }


def read_dry_run(actor: Actor, stored: StoredPlan) -> DryRun | None:
    """Return the last dry run, redacted: that of a request, or the one that workers made as the preview of the move."""
    if stored.dry_run:
        return DryRun.from_dict(stored.dry_run)
    with suppress(LookupFailed, OrderLost):
        return plans.preview(actor, stored)
    return None


@dataclass(frozen=True, slots=True)
class VersionMapping:
    """Holds what a plan says of one old version: ``open`` rows, which a person has to look at, and ``same`` ones. A row
    is a state, its places, and why."""

    version: int
    to: int
    open: list[tuple[str, list[str], str]]
    same: list[tuple[str, list[str], str]]


def list_mappings(plan: Mapping[str, Any]) -> list[VersionMapping]:
    """List the mappings of a plan, as JSON."""
    found = []
    for source in plan["sources"]:
        reasons = source["reasons"]
        rows = [(name, targets, reasons.get(name, "")) for name, targets in source["states"].items()]
        open_rows = [(name, [], reasons.get(name, "")) for name in source["unmapped_states"]]
        open_rows += [row for row in rows if row[2] != SAME]
        found.append(
            VersionMapping(source["version"], source["to"], open_rows, [row for row in rows if row[2] == SAME])
        )
    return found


def describe_policies(plan: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Describe the policies of a plan, as JSON: label and value of each."""
    values = {"unmapped": plan["unmapped"], **plan["options"]}
    return [
        (str(PlanForm.base_fields[name].label), ", ".join(value) if isinstance(value, list) else str(value))
        for name, value in values.items()
        if value and name in PlanForm.base_fields
    ]


def estimate_time(total: int) -> str:
    """Say how long a dry run takes: ``a few seconds``, ``some 20 s``, ``some 2 min``."""
    seconds = total / PER_SECOND
    if seconds < 5:
        return "a few seconds"
    return f"some {seconds:.0f} s" if seconds < 90 else f"some {seconds / 60:.0f} min"


def read_plan_choices(plan: Mapping[str, Any]) -> Choices:
    """Return what a person chose for a plan, as JSON: places that are not automatic, and expressions that they may
    see."""
    found = Choices()
    for source in plan["sources"]:
        given = [name for name, why in source["reasons"].items() if why == "given"]
        found.states.update({name: source["states"].get(name) for name in given})
        found.data.update({name: str(text) for name, text in source["data"].items() if text != MASK})
    return found


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
