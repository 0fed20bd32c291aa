"""Presents the versions of a machine, and migration plans with their dry runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from dashboard.shared.counts import VersionCount, VersionCounts
from dashboard.shared.csv_export import Columns
from dashboard.shared.version_view import load_versions_of
from machines.bulks.store import OrderLost
from machines.catalog.redaction import MASK
from machines.catalog.version_rules import ACTIONS, read_policy
from machines.engine import Live, LookupFailed
from machines.engine.versions import DryRun, MigrationClass, VersionFigures
from machines.engine.versions.records import OUTCOMES
from machines.models import MachineVersion, StoredPlan
from machines.people.actor import Actor
from machines.versions import comparison, plans, rollouts

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
        "rules": rollouts.find_rules(machine), "policy": [(name, name in held) for name in ACTIONS],
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
