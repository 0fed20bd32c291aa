"""Applies a bulk action to a batch of instances, each once, however often a batch is repeated.

An event, and a repair that takes one, carries an idempotency key of the instance's own. The others are made on the
version that was just read, after a look into the history for a step of this very bulk, so that of two workers on the
same instance one gets through and the other finds its step. Of what is deleted no history tells: there it counts that
another worker had begun. What the person who ordered it may do is decided in each step, by the permit it carries.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence

from machines.engine import Engine, Fire, Permit, errors, limits
from machines.people.mirrors import is_mirror, row_methods

from . import migration
from .order import MIGRATE, WORK, Order
from .selection import note_change, note_error
from .store import Item, Note, Store

KEYED = ("force", "edit", "reset", *WORK)
OUTCOMES = ("done", "refused", "changed", "gone", "failed")
TOGETHER = 25  # instances moved between two checks whether to go on
TRIES = 5  # of a repair whose instance moves all the time
UNSTEADY = f"it changed {TRIES} times during the attempt"
LOOKED = 20  # steps of the history in which an own one is looked for


def act(engine: Engine, store: Store, bulk: str, order: Order, permit: Permit | None, items: Sequence[Item]) -> None:
    """Move these instances, as far as ``permit`` goes, and keep the outcome of each.

    Raises EngineUnavailable when that is not known of some.
    """
    if order.action == "fire":
        store.put_outcomes(_fire(engine, bulk, order, permit, items))
        return
    if order.action == MIGRATE:
        store.put_outcomes(_migrate(engine, bulk, order, permit, items))
        return
    if order.action in KEYED:
        for item in items:
            store.put_outcomes({item.id: _move_key(engine, bulk, order, permit, item)})
        return
    firsts = store.begin([item.id for item in items])
    for item, first in zip(items, firsts, strict=True):
        store.put_outcomes({item.id: _repair_one(engine, bulk, order, permit, item, first)})


def key_of(bulk: str, id: str) -> str:
    """Return the idempotency key of one instance."""
    key = f"bulk:{bulk}:{id}"
    return key if len(key) <= limits.MAX_IDEMPOTENCY_KEY else f"bulk:{bulk}:{hashlib.sha256(id.encode()).hexdigest()}"


def reason_of(bulk: str, order: Order) -> str:
    """Return what the history of each instance says."""
    return f"{order.reason}{_mark(bulk)}"


def _mark(bulk: str) -> str:
    return f" [bulk {bulk}]"


def _fire(engine: Engine, bulk: str, order: Order, permit: Permit | None, items: Sequence[Item]) -> Mapping[str, Note]:
    if is_mirror(order.machine):
        return {item.id: _call_method(engine, bulk, order, item) for item in items}
    reason = reason_of(bulk, order)
    fires = [
        Fire(
            order.machine, item.id, order.event, order.payload, expect=item.revision if order.unchanged else None,
            key=key_of(bulk, item.id), actor=order.actor, reason=reason, permit=permit,
        )
        for item in items
    ]  # fmt: skip
    notes = {}
    for item, answer in zip(items, engine.fire_many(fires), strict=True):
        if isinstance(answer, errors.EngineUnavailable):
            raise answer  # with its key, the others give the same answer again
        if isinstance(answer, errors.Conflict):
            notes[item.id] = note_change(item, answer.actual)
        else:
            notes[item.id] = note_error(answer) if isinstance(answer, errors.SignalboxError) else Note("done")
    return notes


def _call_method(engine: Engine, bulk: str, order: Order, item: Item) -> Note:
    """Call the method of a row, for the person who ordered it. A row whose history has this bulk was called before."""

    def call() -> None:
        calls = row_methods()
        if not _is_ours(engine, bulk, order.machine, item.id):
            user = calls.find_user(order.actor) if order.person else order.actor
            calls.call_method(
                order.machine, item.id, order.event, order.payload,
                user=user, expect=item.revision if order.unchanged else None, reason=reason_of(bulk, order),
            )  # fmt: skip

    return _note(item, call)


def _migrate(
    engine: Engine, bulk: str, order: Order, permit: Permit | None, items: Sequence[Item]
) -> Mapping[str, Note]:
    """Move instances to another version. Of those that were moved nothing is noted: see ``migration``."""
    ids = [item.id for item in items]
    notes = migration.move(engine, order, ids, reason_of(bulk, order), permit)
    for id in [id for id, note in notes.items() if note.word == "already"]:
        if _is_ours(engine, bulk, order.machine, id):  # this bulk has moved it before, and could not say so
            del notes[id]
    return notes


def _move_key(engine: Engine, bulk: str, order: Order, permit: Permit | None, item: Item) -> Note:
    repair = getattr(engine, order.action)
    who = {"actor": order.actor, "reason": reason_of(bulk, order), "key": key_of(bulk, item.id), "permit": permit}
    expect = item.revision if order.unchanged else None
    return _note(item, lambda: repair(order.machine, item.id, **order.asked, expect=expect, **who))


def _note(item: Item, move: Callable[[], object]) -> Note:
    """Move an instance; return the outcome. Raises EngineUnavailable."""
    try:
        move()
    except errors.EngineUnavailable:
        raise
    except errors.Conflict as conflict:
        return note_change(item, conflict.actual)
    except errors.SignalboxError as error:
        return note_error(error)
    return Note("done")


def _repair_one(engine: Engine, bulk: str, order: Order, permit: Permit | None, item: Item, first: bool) -> Note:
    """Repair an instance. ``first``: nobody has begun with this one before."""
    for _ in range(TRIES):
        try:
            now = engine.get(order.machine, item.id)
            if now.revision != item.revision and _is_ours(engine, bulk, order.machine, item.id):
                return Note("done")
            if order.unchanged and now.revision != item.revision:
                return note_change(item, now.revision)
            _repair(engine, bulk, order, permit, item.id, now.revision)
            return Note("done")
        except errors.EngineUnavailable:
            raise
        except errors.Conflict:
            continue
        except errors.UnknownInstance:
            return Note("done" if order.action == "delete" and not first else "gone")
        except errors.SignalboxError as error:
            return note_error(error)
    return Note.of_all("changed", UNSTEADY)


def _is_ours(engine: Engine, bulk: str, machine: str, id: str) -> bool:
    return any(step.reason.endswith(_mark(bulk)) for step in engine.history(machine, id, limit=LOOKED))


def _repair(engine: Engine, bulk: str, order: Order, permit: Permit | None, id: str, revision: int) -> None:
    repair = {"suspend": engine.suspend, "resume": engine.resume, "delete": engine.delete}[order.action]
    repair(order.machine, id, actor=order.actor, reason=reason_of(bulk, order), expect=revision, permit=permit)
