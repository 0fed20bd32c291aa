"""Bulk actions: one event or repair for every instance that a filter finds. They need ``operate`` on the machine, and
``fire`` for events.

The dry run moves nothing, so every account that may start one may look; letting it run is what a second person
approves where a version of the machine asks for one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from machines.audit.entries import AuditRecord
from machines.audit.reveals import RevealAudit
from machines.catalog import rules
from machines.catalog.errors import ApprovalNeeded
from machines.catalog.queries import every_outline
from machines.connections import get_engine
from machines.engine import Conflict, Instance, LookupFailed, Step
from machines.instances import guesses
from machines.instances.queries import demand_findable
from machines.people import transition_groups
from machines.people.actor import Actor
from machines.people.errors import Forbidden
from machines.people.redaction import redactor_of

from . import BULK, MIGRATE, Bulk, NotNow, Order, Row
from .store import Note, OrderLost, Store

MAX_MEASURED = 20  # bulks of a page whose rate is measured: a read each
RIGHTS = ("operate", "fire")
WAITING = {"previewed": "run", "paused": "resume", "failed": "retry"}
"""state -> the action that moves instances from there."""
DRY = ("collecting", "previewing")  # stages in which nothing is moved
STEPS = 20  # of the history that the rate is measured over
QUIET = 30_000  # ms without a batch before a bulk counts as stalled, at least
FIELDS = {"previewing": "checked", "running": "tried"}  # state -> the field that counts on
BATCHES = ("done.invoke.preview", "done.invoke.act")


def start(actor: Actor, order: Order, *, stored: int = 0, id: str | None = None) -> Bulk:
    """Freeze what the filter finds and ask each what would come of it. The actor counts as who ordered it.

    ``stored``: the number of the stored plan that it carries out. The same ``id`` again is the same bulk.
    Raises Forbidden, BadInput, BadPayload, UnknownMachine.
    """
    order = replace(order, actor=actor.name, **_make_permit(actor))
    machine, rate = order.machine, order.rate or None
    with actor.records("bulk.start", machine=machine, target=id or "", reason=order.reason) as entry:
        does = f"{order.action} {order.target}".strip()
        entry.note(does=does, filter=order.filter, rate=rate, stored_plan=stored or None)
        _demand(actor, order)
        _spend_guess(actor, order, entry)
        # The filter is kept, and shown with the bulk: it names no redacted value.
        demand_findable(False, machine, order.filter)
        bulk = Bulk.start(get_engine(), order, id=id)
        entry.name(target=bulk.id)
    return bulk


def get(actor: Actor, id: str) -> tuple[Instance, Order]:
    """Return the bulk as it is, and what was ordered. Raises Forbidden, OrderLost."""
    _, now, order = read_bulk(actor, id)
    return now, order


def read_bulk(actor: Actor, id: str) -> tuple[Bulk, Instance, Order]:
    """Return the same, with the bulk for further reading: ``redact_rows`` redacts its rows."""
    bulk, order = _find_bulk(actor, id, "view")
    if not actor.may("view", order.machine):
        raise Forbidden("view")
    return bulk, bulk.get(), order


def find_order(id: str) -> Order | None:
    """Return what was ordered, for callers that ask for the right themselves; None where nothing was."""
    try:
        return Bulk(get_engine(), id).order()
    except (LookupFailed, OrderLost):
        return None


@dataclass(frozen=True, slots=True)
class ListedBulk:
    """A bulk on a list. ``rate``: instances a second at most, 0 for no limit; ``may``: whether its actions are for the
    actor."""

    bulk: Instance
    order: Order
    rate: int
    progress: Progress
    may: bool


@dataclass(frozen=True, slots=True)
class BulkPage:
    """A page of bulks, the one that changed last first. ``cursor``: of the next page, None on the last one."""

    bulks: list[ListedBulk]
    cursor: str | None = None
    missing: tuple[str, ...] = ()


def find(actor: Actor, *, state: str | None = None, cursor: str | None = None, limit: int = 50) -> BulkPage:
    """List bulks of machines that the actor sees. A page may be short, or empty, and have a cursor.

    Raises BadInput for an invalid cursor.
    """
    engine = get_engine()
    if BULK not in engine.machines():
        return BulkPage([])
    page = engine.find(BULK, state=state, cursor=cursor, limit=limit, newest=True)
    orders = Store.read_orders(engine, [one.id for one in page.instances])
    scope, found, now = actor.scope("view"), [], time.time() * 1000
    measured = 0
    for one in page.instances:
        order, rate = orders.get(one.id, (None, 0))
        if order is None or order.machine not in scope:
            continue
        steps: Sequence[Step] = ()
        if one.state in FIELDS and measured < MAX_MEASURED:
            steps, measured = _read_steps(one.id), measured + 1
        found.append(ListedBulk(one, order, rate, measure_progress(one, steps, now=now), may(actor, order)))
    return BulkPage(found, page.cursor, page.missing)


def progress(bulk: Instance) -> Progress:
    """Measure one bulk, for who may see it."""
    steps = _read_steps(bulk.id) if bulk.state in FIELDS else ()
    return measure_progress(bulk, steps, now=time.time() * 1000)


def _read_steps(id: str) -> Sequence[Step]:
    try:
        return get_engine().history(BULK, id, limit=STEPS)
    except LookupFailed:  # removed since it was found
        return ()


def rows(actor: Actor, id: str, start: int = 0, count: int = 100) -> list[Row]:
    """Return some of what it found, each with its verdict and its outcome."""
    _, order = get(actor, id)
    return redact_rows(actor, order.machine, Bulk(get_engine(), id).rows(start, count))


def redact_rows(actor: Actor, machine: str, rows: Sequence[Row]) -> list[Row]:
    """Redact values of instances in the reasons, where any field of the machine is hidden from the actor."""
    redactor = redactor_of(actor, machine)
    if not redactor.open:
        return [replace(row, verdict=_mask(row.verdict), outcome=_mask(row.outcome)) for row in rows]
    if isinstance(redactor, RevealAudit):
        shown = {row.item.id: [note for note in (row.verdict, row.outcome) if note] for row in rows}
        redactor.note_all(
            {id: {"error"} for id, notes in shown.items() if any(note.why != note.plain for note in notes)}
        )
    return list(rows)


def _mask(note: Note | None) -> Note | None:
    return note and Note.of_all(note.word, note.plain)


def may(actor: Actor, order: Order) -> bool:
    """Tell whether its actions are for this person: who moves instances with an event has to hold that right, too."""
    return all(actor.may(right, order.machine) for right in _list_rights(order))


def run(actor: Actor, id: str) -> Instance:
    """Let it go. Raises Forbidden, ApprovalNeeded, NotNow, Suspended."""
    return _carry_out(actor, id, "run", "bulk.run")


def release(actor: Actor, id: str, *, second: str, expect: int | None = None, turn: int | None = None) -> Instance:
    """Let an approved bulk go on. ``second``: who approved it; then no rule asks for one any more. It goes on from
    wherever it waits.

    ``expect``: the revision they looked at. Raises Conflict for any other: it may have found something else since.
    ``turn``: of the versions that a migration was approved for; raises VersionRefused for any other."""
    action = WAITING.get(_find_bulk(actor, id)[0].get().state, "run")
    return _carry_out(actor, id, action, "bulk.run", second=second, expect=expect, turn=turn)


def demand_unmoved(id: str, expect: int | None) -> Instance:
    """Return the bulk as it is. Raises Conflict where that is not the revision that was looked at, if one was;
    UnknownInstance."""
    now = Bulk(get_engine(), id).get()
    if expect is not None and now.revision != expect:
        raise Conflict(BULK, id, expected=expect, actual=now.revision)
    return now


def needs_second(actor: Actor, order: Order) -> bool:
    """Tell whether any version of the machine needs an approval for it, or of a migration the rules for changes of
    versions."""
    change = _prepare_migration(order)
    if change is not None:
        return change.rule is not None
    return actor.is_person and rules.needs_approval(every_outline(order.machine), order.demanded)


def _prepare_migration(order: Order) -> rules.VersionChange | None:
    """Find the plan of a migration; None for other actions."""
    if order.action != MIGRATE:
        return None
    moves = [(source.version, source.to) for source in order.migration.sources]
    return rules.prepare_change(MIGRATE, order.machine, moves=moves)


def pause(actor: Actor, id: str) -> Instance:
    return _send_event(actor, id, "pause", "bulk.pause")


def resume(actor: Actor, id: str) -> Instance:
    """Go on after a pause. Raises ApprovalNeeded where nobody approved it so far, as ``run`` and ``retry`` do."""
    return _carry_out(actor, id, "resume", "bulk.resume")


def retry(actor: Actor, id: str) -> Instance:
    """Go on where it broke."""
    return _carry_out(actor, id, "retry", "bulk.resume")


def stop(actor: Actor, id: str) -> Instance:
    return _send_event(actor, id, "stop", "bulk.stop")


def remove(actor: Actor, id: str) -> Instance:
    """Have a worker remove one that is over, with its selection and results. Raises Forbidden, NotNow."""
    return _send_event(actor, id, "remove", "bulk.remove")


def rate(actor: Actor, id: str, rate: int) -> None:
    """Set the rate from the next instances on, in instances a second; 0 for as fast as it goes. Also while it runs."""
    bulk, order = _find_bulk(actor, id)
    with actor.records("bulk.rate", machine=order.machine, target=id) as entry:
        _demand(actor, order)
        entry.note(was=bulk.rate(), given=rate)
        bulk.set_rate(rate)


def again(actor: Actor, id: str, *, reason: str, new: str | None = None) -> Bulk:
    """Make a new bulk of the same kind with those that were refused, changed or failed. ``new``: its id."""
    bulk, order = _find_bulk(actor, id)
    with actor.records("bulk.start", machine=order.machine, reason=reason) as entry:
        entry.note(does=f"{order.action} {order.target}".strip(), again=id)
        _demand(actor, order)
        _spend_guess(actor, order, entry)
        made = bulk.again(actor.name, reason, id=new, **_make_permit(actor))
        entry.name(target=made.id)
    return made


def _find_bulk(actor: Actor, id: str, right: str = "operate") -> tuple[Bulk, Order]:
    """Find a bulk. An account without the right on every machine does not learn which bulk actions exist. Raises
    OrderLost."""
    bulk = Bulk(get_engine(), id)
    try:
        bulk.get()
        return bulk, bulk.order()
    except (LookupFailed, OrderLost):
        actor.demand(right)
        raise OrderLost(f"bulk action {id[:100]} not found, or expired") from None


def _carry_out(
    actor: Actor, id: str, name: str, action: str, *, second: str = "", expect: int | None = None,
    turn: int | None = None,
) -> Instance:  # fmt: skip
    """Carry out an action that moves instances."""
    bulk, order = _find_bulk(actor, id)
    with actor.records(action, machine=order.machine, target=id) as entry:
        _demand(actor, order)
        if second:
            entry.note(approved_by=second)
        elif needs_second(actor, order) and not bulk.is_approved():
            _ask(actor, entry, bulk, order, name)
        if second and (change := _prepare_migration(order)):
            change.demand_turn(turn)
        if second:  # before anything is moved by it
            bulk.approve(second, demand_unmoved(id, expect))
        return _fire(entry, bulk, name, actor, **({} if expect is None else {"expect": expect}))


def _ask(actor: Actor, entry: AuditRecord, bulk: Bulk, order: Order, name: str) -> None:
    """Ask for an approval: whatever state the bulk was brought into, nothing moves before a second person has looked at
    it."""
    now = bulk.get()
    if now.state == "failed" and now.data["stage"] in DRY:
        return
    if now.state not in WAITING:
        raise NotNow(bulk.id, name, now.state)
    asked: dict[str, Any] = {"asked": {}, "reason": order.reason, "expect": now.revision, "bulk": bulk.id}
    change = _prepare_migration(order)
    try:
        if change is not None:
            change.demand_second(actor, "", action=order.demanded, hint="run it in the room, with an account", **asked)
            return
        raise ApprovalNeeded(order.machine, "", order.demanded, **asked)
    except ApprovalNeeded:
        entry.void()
        raise


def _send_event(actor: Actor, id: str, name: str, action: str) -> Instance:
    bulk, order = _find_bulk(actor, id)
    with actor.records(action, machine=order.machine, target=id) as entry:
        _demand(actor, order)
        return _fire(entry, bulk, name, actor)


def _fire(entry: AuditRecord, bulk: Bulk, name: str, actor: Actor, **more: Any) -> Instance:
    before = bulk.get()
    after: Instance = getattr(bulk, name)(actor.name, **more)
    entry.note_step(before.state, after)
    return after


def _spend_guess(actor: Actor, order: Order, entry: AuditRecord) -> None:
    """Count the dry run, which explains the event for each instance, as one guess of all instances together."""
    event = order.event if order.action == "fire" else ""
    if not event and order.action not in guesses.COMPUTING:
        return
    asked = {"payload": order.payload} if event else {}
    if guesses.spend_guess(actor, order.machine, "", event, action="bulk.start", **asked):
        entry.note(**asked)


def _demand(actor: Actor, order: Order) -> None:
    actor.demand_discreetly(order.machine, *_list_rights(order))


def _list_rights(order: Order) -> tuple[str, ...]:
    return RIGHTS if order.action == "fire" else RIGHTS[:1]


def _make_permit(actor: Actor) -> dict[str, Any]:
    """Return what of the actor the engine holds each step to."""
    return {"person": True, "groups": transition_groups.groups_of(actor.user)} if actor.is_person else {}


@dataclass(frozen=True, slots=True)
class Progress:
    """Holds how far a bulk is. ``total``: instances that matched; ``done``: those that have their result in its stage.

    ``rate``: measured instances a second, None where unknown; ``left``: ms until the stage ends, None where unknown;
    ``stalled``: ms since the last batch, where that is unusually long ago.
    """

    total: int
    done: int
    previews: bool
    rate: float | None = None
    left: int | None = None
    stalled: int | None = None

    @property
    def pace(self) -> str:
        """Return ``4.2/s`` or ``1,200/s``, "" where the rate is unknown."""
        if self.rate is None:
            return ""
        return f"{self.rate:.1f}/s" if self.rate < 10 else f"{self.rate:,.0f}/s"


def measure_progress(bulk: Instance, steps: Sequence[Step] = (), *, now: float = 0) -> Progress:
    """Measure a bulk. ``steps``: the latest of its history, newest first; ``now``: ms."""
    runs = bulk.data["stage"] == "running"
    total, done = bulk.data["found"], bulk.data["tried" if runs else "checked"]
    name = FIELDS.get(bulk.state, "")
    points = _read_points(steps, name) if name and not bulk.suspended else []
    if len(points) < 2:
        return Progress(total, done, not runs)
    (latest, reached), (begun, before) = points[0], points[-1]
    seconds = (latest - begun) / 1000
    rate = (reached - before) / seconds if seconds > 0 and reached > before else None
    quiet = now - latest
    stalled = quiet > max(QUIET, 3 * (latest - begun) / (len(points) - 1))
    left = None if rate is None or stalled else int(max(total - done, 0) / rate * 1000)
    return Progress(total, done, not runs, rate, left, int(quiet) if stalled else None)


def _read_points(steps: Sequence[Step], name: str) -> list[tuple[int, int]]:
    """Read when how many were done, newest first: the batches since it last started, and that start."""
    points: list[tuple[int, int]] = []
    for place, step in enumerate(steps):
        if step.event in BATCHES and isinstance(value := step.changes.get(name), int):
            points.append((step.at, value))
            if value == 0:  # its stage began with this step
                break
        else:
            earlier = (older.changes[name] for older in steps[place:] if isinstance(older.changes.get(name), int))
            points.append((step.at, next(earlier, 0)))
            break
    return points
