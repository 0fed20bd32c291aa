"""Migration plans: made, stored for review, tried on the whole fleet, carried out as a bulk action, and taken back.

To look at a plan takes the right to view its machine; to store, try and carry one out, the right to operate it. A plan
is carried out as it was stored: the bulk action holds a copy, and what a second person approves is that bulk action.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from django.db import models
from django.db.models import QuerySet
from django.utils import timezone

from machines.catalog.errors import NotMigrated, PlanInUse
from machines.catalog.models import StoredPlan
from machines.catalog.version_rules import MIGRATE, find_rule
from machines.catalog.versions import comparison, rollouts
from machines.connections import get_engine
from machines.engine import BadInput, Instance, LookupFailed, MigrationPlan, arguments
from machines.engine.limits import MAX_REASON
from machines.engine.versions.records import DryRun
from machines.instances.bulks import Bulk, Order
from machines.instances.bulks import actions as bulks
from machines.instances.bulks.bulk import LIVE
from machines.instances.bulks.store import OrderLost
from machines.people.actor import Actor

AT_ONCE = 50_000  # instances of a dry run in one request; of more, workers make it as the preview of the bulk action
KEPT_REFUSED = 1000  # refused instances that are stored with a dry run; their number is in its classes


@dataclass(frozen=True, slots=True)
class Progress:
    """The bulk action that moves by a stored plan, and the one that moves back; None where there is none, or Redis has
    let it go. ``needs_second``: whether letting it run takes another person."""

    bulk: Instance | None
    back: Instance | None
    needs_second: bool


def make(actor: Actor, machine: str, to: int, **terms: Any) -> MigrationPlan:
    """Make a plan that is not stored; ``terms``: those of ``Engine.plan``. Raises Forbidden, PlanError with all
    findings, UnknownMachine."""
    actor.demand("view", machine)
    return get_engine().plan(machine, to, **terms)


def read(actor: Actor, machine: str, document: Mapping[str, Any]) -> MigrationPlan:
    """Read a plan from its JSON, compared with the versions that are published now. Raises Forbidden, PlanError."""
    actor.demand("view", machine)
    plan = MigrationPlan.from_dict(document)
    if plan.machine != machine:
        raise BadInput(f"the plan is for the machine {plan.machine!r}, not for {machine!r}", code="SB600")
    get_engine().check_plan(plan)
    return plan


def list_plans(actor: Actor, machine: str = "") -> QuerySet[StoredPlan]:
    """List plans of a machine, or of all that the actor sees, newest first, without their dry runs."""
    if machine:
        actor.demand("view", machine)
    found = StoredPlan.objects.defer("dry_run")
    return found.filter(machine=machine) if machine else actor.scope("view").narrow(found)


def get(actor: Actor, id: int) -> StoredPlan:
    """Return a stored plan with its dry run as the actor may see it; ``comparison.hide_plan`` does the same for the
    plan itself. Raises Forbidden, also where there is no such plan and the actor does not see every machine;
    DoesNotExist."""
    return _check_visible(actor, _load(actor, id, "view"))


def store(actor: Actor, plan: MigrationPlan, *, note: str = "") -> StoredPlan:
    """Keep a plan for review. Raises Forbidden, PlanError where it does not fit the published versions."""
    with actor.records("plan.store", machine=plan.machine, reason=note) as entry:
        entry.note(plan=plan.id, to=plan.to)
        actor.demand("operate", plan.machine)
        arguments.check_text("note", note, MAX_REASON)
        get_engine().check_plan(plan)
        made = StoredPlan.objects.create(
            machine=plan.machine, to=plan.to, plan=plan.as_dict(), plan_id=plan.id, note=note.replace("\0", ""),
            author=actor.name, author_id=actor.id,
        )  # fmt: skip
        entry.name(target=f"plan {made.pk}")
    return made


def preview(actor: Actor, row: StoredPlan) -> DryRun | None:
    """Return the dry run that the bulk action of a plan began with, as the actor may see it; None where there is
    none."""
    found = Bulk(get_engine(), row.bulk).dry_run() if row.bulk else None
    return found and comparison.hide_dry_run(actor, row.machine, found)


def try_out(actor: Actor, id: int) -> StoredPlan:
    """Compute what the plan would do with each instance, and keep the result with it; nothing is changed.

    Raises Forbidden, PlanError where it has gone stale; BadInput (SB648) for a fleet that is too large for one request:
    the preview of ``move`` is the same, made by workers.
    """
    row = _load(actor, id, "operate", action="plan.try")
    with actor.records("plan.try", machine=row.machine, target=f"plan {id}") as entry:
        entry.note(plan=row.plan_id)
        total = get_engine().live(row.machine).total
        if total > AT_ONCE:
            raise BadInput(
                f"{row.machine!r} has {total:,} instances, and one request tries a plan on {AT_ONCE:,} at most: start"
                " the move, whose preview is the same dry run by workers; nothing moves before it is run", code="SB648",
            )  # fmt: skip
        found = get_engine().dry_run(MigrationPlan.from_dict(row.plan))
        entry.note(total=found.total, refused=found.refused_count)
        _keep(row, dry_run=found.as_dict(KEPT_REFUSED), dry_run_at=timezone.now())
    return _check_visible(actor, row)


def move(actor: Actor, id: int, *, reason: str, rate: int = 0, versions: Sequence[int] = ()) -> StoredPlan:
    """Start the bulk action that moves instances by the plan: it collects and previews them, and nothing moves before
    it is run. ``versions``: the one old version whose instances are meant, all of the plan where none is named.

    Raises Forbidden, PlanInUse while a bulk action of the plan is not over, and what ``bulks.start`` raises.
    """
    row = _load(actor, id, "operate", action="bulk.start")
    _start(actor, row, "bulk", row.plan, reason, rate, _filter(versions))
    return _check_visible(actor, row)


def move_back(actor: Actor, id: int, *, reason: str, rate: int = 0, make_current: bool = False) -> StoredPlan:
    """Start the bulk action that takes the plan back: each instance that the plan moved gets the version and the place
    that it had; all others stay. ``make_current``: new instances get the older version from now on, too, which takes
    the right to publish. Raises NotMigrated where nothing was moved by the plan, what ``rollouts.make_current`` and
    what ``move`` raise."""
    row = _load(actor, id, "operate", action="bulk.start")
    if not row.bulk:
        with actor.records("bulk.start", machine=row.machine, target=f"plan {id}", reason=reason):
            raise NotMigrated(row.pk)
    inverse = MigrationPlan.from_dict(row.plan).inverse()
    if make_current:
        rollouts.make_current(actor, row.machine, inverse.to, reason=reason)
    _start(actor, row, "back", inverse.as_dict(), reason, rate, {})
    return _check_visible(actor, row)


def progress(actor: Actor, row: StoredPlan) -> Progress:
    """Return how far a stored plan is. Raises EngineUnavailable."""
    moves = [(source["version"], source["to"]) for source in row.plan["sources"]]
    rule = find_rule(MIGRATE, row.machine, moves=moves)
    return Progress(_find_bulk(row.bulk), _find_bulk(row.back), rule is not None)


def status(row: StoredPlan) -> str:
    """Return the state of the bulk action of a stored plan: kept once it is over, else what it is now; empty where none
    was started, or Redis has let it go. Raises EngineUnavailable."""
    if row.outcome is not None:
        return str(row.outcome["state"])
    bulk = _find_bulk(row.bulk)
    return bulk.state if bulk else ""


def note_approval(bulk: str, second: str) -> None:
    """Note that a second person has approved the bulk action that moves by a plan."""
    found = StoredPlan.objects.filter(models.Q(bulk=bulk) | models.Q(back=bulk))
    found.update(approved_by=second, approved_at=timezone.now())


def keep_outcomes() -> int:
    """Keep the outcome of bulk actions that are over, with the dry run that they began with; how many. Redis lets bulk
    actions go after some weeks."""
    count = 0
    for row in StoredPlan.objects.exclude(bulk="").filter(outcome=None):
        bulk = _find_bulk(row.bulk)
        if bulk is None or bulk.state in LIVE:
            continue
        facts = {"state": bulk.state, "found": bulk.data["found"], "outcomes": bulk.data["outcomes"] or {}}
        found = Bulk(get_engine(), row.bulk).dry_run() if row.dry_run is None else None
        if found is not None:
            made = datetime.fromtimestamp(bulk.created / 1000, UTC)
            _keep(row, dry_run=found.as_dict(KEPT_REFUSED), dry_run_at=made)
        _keep(row, outcome=facts)
        count += 1
    return count


def _load(actor: Actor, id: int, right: str, *, action: str = "") -> StoredPlan:
    """Load a plan. ``action``: of the audit, which then has the refusal."""
    return cast(StoredPlan, actor.find_row(StoredPlan.objects.all(), id, right, "plan", action=action))


def _check_visible(actor: Actor, row: StoredPlan) -> StoredPlan:
    if row.dry_run:
        row.dry_run = comparison.hide_dry_run(actor, row.machine, DryRun.from_dict(row.dry_run)).as_dict()
    return row


def _start(
    actor: Actor, row: StoredPlan, field: str, plan: Mapping[str, Any], reason: str, rate: int, filter: dict[str, Any]
) -> None:
    """Start a bulk action. Of two who start it at once, the one whose write finds the former bulk action goes on."""
    former, new = getattr(row, field), get_engine().new_id()
    rows = StoredPlan.objects.filter(pk=row.pk)
    now = _find_bulk(former)
    if (now is not None and now.state in LIVE) or not rows.filter(**{field: former}).update(**{field: new}):
        row.refresh_from_db()
        with actor.records("bulk.start", machine=row.machine, target=f"plan {row.pk}", reason=reason):
            raise PlanInUse(row.pk, getattr(row, field), "is carried out" if field == "bulk" else "is taken back")
    try:
        order = Order(row.machine, MIGRATE, actor.name, reason, filter, plan=dict(plan), rate=rate)
        bulks.start(actor, order, stored=row.pk, id=new)
    except Exception:
        rows.filter(**{field: new}).update(**{field: former})
        raise
    setattr(row, field, new)
    if field == "bulk":
        _keep(row, outcome=None, approved_by="", approved_at=None)


def _filter(versions: Iterable[int]) -> dict[str, Any]:
    wanted = list(versions)
    if len(wanted) > 1:
        raise BadInput("a move is of all versions of its plan, or of one: make a plan for these versions")
    return {"version": wanted[0]} if wanted else {}


def _find_bulk(id: str) -> Instance | None:
    if not id:
        return None
    try:
        return Bulk(get_engine(), id).get()
    except (LookupFailed, OrderLost):
        return None


def _keep(row: StoredPlan, **facts: Any) -> None:
    StoredPlan.objects.filter(pk=row.pk).update(**facts)
    for name, value in facts.items():
        setattr(row, name, value)
