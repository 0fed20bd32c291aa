"""Actions on a queue. All but reading need ``operate`` on its machine, and a reason."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
    with _record(actor, "queue.pause", machine, queue, reason) as (engine, who, entry):
        _note_group(entry, group)
        engine.pause(machine, queue, group=group, **who)


def resume(actor: Actor, machine: str, queue: str, *, reason: str, group: str | None = None) -> None:
    """End the pause of a queue, or of one group of it."""
    with _record(actor, "queue.resume", machine, queue, reason) as (engine, who, entry):
        _note_group(entry, group)
        engine.resume_queue(machine, queue, group=group, **who)


def limit_group(actor: Actor, machine: str, queue: str, group: str, *, reason: str, **wanted: Any) -> None:
    """Limit one group of a queue across all workers. ``wanted``: concurrency and rate, as of ``Engine.limit``."""
    with _record(actor, "queue.limit", machine, queue, reason) as (engine, who, entry):
        _demand_reason(reason, "a group")
        _note_group(entry, group, given=wanted)
        engine.limit(machine, queue, group=group, **wanted, **who)


def limit(
    actor: Actor, machine: str, queue: str, *, reason: str, concurrency: int | None = None, rate: str | None = None
) -> QueueStats:
    """Limit a queue across all workers, as ``Engine.limit`` does; return the queue's figures afterwards."""
    with _record(actor, "queue.limit", machine, queue, reason) as (engine, who, entry):
        _demand_reason(reason, "a queue")
        wanted = {"concurrency": concurrency, "rate": rate}
        before = engine.stats(machine).get(queue)
        was = {"concurrency": before.concurrency, "rate": before.rate} if before else None
        entry.note(was=was, given=wanted)
        engine.limit(machine, queue, concurrency=concurrency, rate=rate, **who)
        return engine.stats(machine)[queue]


def purge(actor: Actor, machine: str, queue: str, *, reason: str, place: str, expect: int) -> int:
    """Take all jobs of one place away for good; how many. ``expect``: how many the caller saw, else Miscounted."""
    with _record(actor, "queue.purge", machine, queue, reason) as (engine, who, entry):
        entry.note(place=place, expected=expect)
        return _note_count(entry, engine.purge(machine, queue, place=place, expect=expect, **who))


def redrive(actor: Actor, machine: str, queue: str, *, reason: str) -> int:
    """Make all dead jobs ready again, no handled ones; return how many."""
    with _record(actor, "queue.redrive", machine, queue, reason) as (engine, who, entry):
        return _note_count(entry, engine.redrive(machine, queue, **who))


def move(actor: Actor, machine: str, queue: str, *, reason: str) -> int:
    """Make all delayed jobs ready at once; return how many."""
    with _record(actor, "job.move", machine, queue, reason) as (engine, who, entry):
        return _note_count(entry, engine.move_now(machine, queue, **who))


@contextmanager
def _record(
    actor: Actor, action: str, machine: str, queue: str, reason: str
) -> Iterator[tuple[Engine, Who, AuditRecord]]:
    """Record what the block does; give it the engine, who acts, and the record."""
    with actor.records(action, machine=machine, queue=queue, reason=reason) as entry, ExitStack() as stack:
        actor.demand("operate", machine)
        who: Who = {"actor": actor.name, "reason": reason}
        if action in REPAIR:
            who["permit"] = stack.enter_context(rules.alone(actor, machine, REPAIR[action]))
        yield get_engine(), who, entry


def _demand_reason(reason: str, what: str) -> None:
    if not reason.strip():
        raise BadInput(f"limiting {what} needs a reason", code="SB404")


def _note_group(entry: AuditRecord, group: str | None, **more: Any) -> None:
    if group is not None:
        entry.note(group=group, **more)


def _note_count(entry: AuditRecord, count: int) -> int:
    entry.note(count=count)
    return count
