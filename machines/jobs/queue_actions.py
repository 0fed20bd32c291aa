"""Actions on a queue. All but reading need ``operate`` on its machine, and a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from machines.audit.entries import AuditRecord
from machines.connections import get_engine
from machines.engine import BadInput, Engine, QueueStats
from machines.people import rules
from machines.people.actor import Actor

Who = dict[str, Any]  # actor and reason, and the permit of what does the same as a repair
REPAIR = {"queue.purge": "cancel", "queue.redrive": "retry", "job.move": "retry"}
"""action -> the repair that does the same to each instance that waits."""


def stats(actor: Actor, machine: str) -> dict[str, QueueStats]:
    """Queue -> its figures. Raises Forbidden, UnknownMachine."""
    actor.demand("view", machine)
    return get_engine().stats(machine)


def pause(actor: Actor, machine: str, queue: str, *, reason: str) -> None:
    """No job of it is handed out until it is resumed."""
    _done(actor, "queue.pause", machine, queue, reason, lambda engine, who, _: engine.pause(machine, queue, **who))


def resume(actor: Actor, machine: str, queue: str, *, reason: str) -> None:
    _done(
        actor, "queue.resume", machine, queue, reason, lambda engine, who, _: engine.resume_queue(machine, queue, **who)
    )


def limit(
    actor: Actor, machine: str, queue: str, *, reason: str, concurrency: int | None = None, rate: str | None = None
) -> QueueStats:
    """Limits across all workers, as ``Engine.limit`` takes them; the queue's figures afterwards."""

    def done(engine: Engine, who: Who, deed: AuditRecord) -> QueueStats:
        if not who["reason"].strip():
            raise BadInput("limiting a queue needs a reason", code="SB404")
        wanted = {"concurrency": concurrency, "rate": rate}
        before = engine.stats(machine).get(queue)
        was = {"concurrency": before.concurrency, "rate": before.rate} if before else None
        deed.note(was=was, given=wanted)
        engine.limit(machine, queue, concurrency=concurrency, rate=rate, **who)
        return engine.stats(machine)[queue]

    return _done(actor, "queue.limit", machine, queue, reason, done)


def purge(actor: Actor, machine: str, queue: str, *, reason: str, place: str, expect: int) -> int:
    """Takes all jobs of one place away for good; how many. ``expect``: how many the caller saw, else Miscounted."""

    def done(engine: Engine, who: Who, deed: AuditRecord) -> int:
        deed.note(place=place, expected=expect)
        return _counted(deed, engine.purge(machine, queue, place=place, expect=expect, **who))

    return _done(actor, "queue.purge", machine, queue, reason, done)


def redrive(actor: Actor, machine: str, queue: str, *, reason: str) -> int:
    """All dead jobs are ready again, no handled ones; how many."""

    def done(engine: Engine, who: Who, deed: AuditRecord) -> int:
        return _counted(deed, engine.redrive(machine, queue, **who))

    return _done(actor, "queue.redrive", machine, queue, reason, done)


def move(actor: Actor, machine: str, queue: str, *, reason: str) -> int:
    """All delayed jobs are ready at once; how many."""

    def done(engine: Engine, who: Who, deed: AuditRecord) -> int:
        return _counted(deed, engine.move_now(machine, queue, **who))

    return _done(actor, "job.move", machine, queue, reason, done)


def _done(
    actor: Actor, action: str, machine: str, queue: str, reason: str, act: Callable[[Engine, Who, AuditRecord], Any]
) -> Any:
    with actor.records(action, machine=machine, queue=queue, reason=reason) as deed:
        actor.demand("operate", machine)
        who: Who = {"actor": actor.name, "reason": reason}
        if action not in REPAIR:
            return act(get_engine(), who, deed)
        with rules.alone(actor, machine, REPAIR[action]) as permit:
            return act(get_engine(), who | {"permit": permit}, deed)


def _counted(deed: AuditRecord, count: int) -> int:
    deed.note(count=count)
    return count
