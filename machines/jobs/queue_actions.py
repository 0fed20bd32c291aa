"""Actions on a queue. All but reading need ``operate`` on its machine, and a reason."""

from collections.abc import Callable
from typing import Any

from machines.audit.entries import AuditRecord
from machines.catalog import rules
from machines.connections import get_engine
from machines.engine import BadInput, Engine, QueueStats
from machines.people.actor import Actor

Who = dict[str, Any]  # actor and reason, and the permit of what does the same as a repair
REPAIR = {"queue.purge": "cancel", "queue.redrive": "retry", "job.move": "retry"}
"""action -> the repair that does the same to each instance that waits."""


def stats(actor: Actor, machine: str) -> dict[str, QueueStats]:
    """Return queue -> its figures. Raises Forbidden, UnknownMachine."""
    actor.demand("view", machine)
    return get_engine().stats(machine)


def pause(actor: Actor, machine: str, queue: str, *, reason: str, group: str | None = None) -> None:
    """Hand out no job of the queue, or of one group of it, until it is resumed."""

    def perform(engine: Engine, who: Who, entry: AuditRecord) -> None:
        _note_group(entry, group)
        engine.pause(machine, queue, group=group, **who)

    _perform(actor, "queue.pause", machine, queue, reason, perform)


def resume(actor: Actor, machine: str, queue: str, *, reason: str, group: str | None = None) -> None:
    """End the pause of a queue, or of one group of it."""

    def perform(engine: Engine, who: Who, entry: AuditRecord) -> None:
        _note_group(entry, group)
        engine.resume_queue(machine, queue, group=group, **who)

    _perform(actor, "queue.resume", machine, queue, reason, perform)


def limit_group(actor: Actor, machine: str, queue: str, group: str, *, reason: str, **wanted: Any) -> None:
    """Limit one group of a queue across all workers. ``wanted``: concurrency and rate, as of ``Engine.limit``."""

    def perform(engine: Engine, who: Who, entry: AuditRecord) -> None:
        if not who["reason"].strip():
            raise BadInput("limiting a group needs a reason", code="SB404")
        _note_group(entry, group, given=wanted)
        engine.limit(machine, queue, group=group, **wanted, **who)

    _perform(actor, "queue.limit", machine, queue, reason, perform)


def limit(
    actor: Actor, machine: str, queue: str, *, reason: str, concurrency: int | None = None, rate: str | None = None
) -> QueueStats:
    """Limit a queue across all workers, as ``Engine.limit`` does; return the queue's figures afterwards."""

    def perform(engine: Engine, who: Who, entry: AuditRecord) -> QueueStats:
        if not who["reason"].strip():
            raise BadInput("limiting a queue needs a reason", code="SB404")
        wanted = {"concurrency": concurrency, "rate": rate}
        before = engine.stats(machine).get(queue)
        was = {"concurrency": before.concurrency, "rate": before.rate} if before else None
        entry.note(was=was, given=wanted)
        engine.limit(machine, queue, concurrency=concurrency, rate=rate, **who)
        return engine.stats(machine)[queue]

    return _perform(actor, "queue.limit", machine, queue, reason, perform)


def purge(actor: Actor, machine: str, queue: str, *, reason: str, place: str, expect: int) -> int:
    """Take all jobs of one place away for good; how many. ``expect``: how many the caller saw, else Miscounted."""

    def perform(engine: Engine, who: Who, entry: AuditRecord) -> int:
        entry.note(place=place, expected=expect)
        return _note_count(entry, engine.purge(machine, queue, place=place, expect=expect, **who))

    return _perform(actor, "queue.purge", machine, queue, reason, perform)


def redrive(actor: Actor, machine: str, queue: str, *, reason: str) -> int:
    """Make all dead jobs ready again, no handled ones; return how many."""

    def perform(engine: Engine, who: Who, entry: AuditRecord) -> int:
        return _note_count(entry, engine.redrive(machine, queue, **who))

    return _perform(actor, "queue.redrive", machine, queue, reason, perform)


def move(actor: Actor, machine: str, queue: str, *, reason: str) -> int:
    """Make all delayed jobs ready at once; return how many."""

    def perform(engine: Engine, who: Who, entry: AuditRecord) -> int:
        return _note_count(entry, engine.move_now(machine, queue, **who))

    return _perform(actor, "job.move", machine, queue, reason, perform)


def _perform(
    actor: Actor, action: str, machine: str, queue: str, reason: str, act: Callable[[Engine, Who, AuditRecord], Any]
) -> Any:
    with actor.records(action, machine=machine, queue=queue, reason=reason) as entry:
        actor.demand("operate", machine)
        who: Who = {"actor": actor.name, "reason": reason}
        if action not in REPAIR:
            return act(get_engine(), who, entry)
        with rules.alone(actor, machine, REPAIR[action]) as permit:
            return act(get_engine(), who | {"permit": permit}, entry)


def _note_group(entry: AuditRecord, group: str | None, **more: Any) -> None:
    if group is not None:
        entry.note(group=group, **more)


def _note_count(entry: AuditRecord, count: int) -> int:
    entry.note(count=count)
    return count
