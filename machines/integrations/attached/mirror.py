"""Writes rows into the instances that mirror them.

Transitions are fired as events, so an instance has history, counts and statistics as of any machine. After that the
rows are read, and where an instance says something else it is put into the state of its row. The process that writes an
instance reads its row afterwards, so the last write is followed by a reading that found nothing to do: of two commits
that arrive in the wrong order, or twice, the later row is what stays.
"""

import contextlib
import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import Error as DatabaseError

from machines.connections import get_engine
from machines.engine import (
    BadInput,
    Conflict,
    Engine,
    EngineUnavailable,
    Fire,
    Instance,
    InstanceExists,
    SignalboxError,
    UnknownInstance,
)

from . import definition
from .columns import Row
from .definition import TARGET, find_transition, is_open
from .libraries import MadeTransition
from .registry import Attachment, Change

log = logging.getLogger(__name__)

TURNS = 10  # in which rows that others move are read again
AWAY = 1.0  # seconds for which a process records nothing after Redis did not answer; reconcile finds it
ACTOR = "row"
_away_until = 0.0


@dataclass
class SettledRows:
    """What became of rows. ``kinds``: how many were created, moved, edited and removed; ``errors``: by id."""

    kinds: Counter[str] = field(default_factory=Counter)
    errors: dict[str, str] = field(default_factory=dict)


def record(attachment: Attachment, changes: Mapping[Any, Change], using: str) -> None:
    """Record a commit. Whatever fails here, the commit stands, and ``reconcile`` finds it."""
    global _away_until
    if time.monotonic() < _away_until:
        return
    try:
        _record(get_engine(), attachment, changes, using)
    except EngineUnavailable as error:
        _away_until = time.monotonic() + AWAY
        log.warning("%s is not mirrored while Redis is away, reconcile finds it: %s", attachment.label, error)
    except (SignalboxError, DatabaseError) as error:
        log.warning("%s: a change is not mirrored, reconcile finds it: %s", attachment.label, error)


def _record(engine: Engine, attachment: Attachment, changes: Mapping[Any, Change], using: str) -> None:
    definition.ensure(engine, attachment)
    seen: dict[str, Instance] = {}
    notes: dict[str, tuple[str, str]] = {}
    created = [pk for pk, change in changes.items() if change.created]
    rows = read_rows(attachment, created, using) if created and attachment.columns else {}
    for pk, change in changes.items():
        if change.created:
            with contextlib.suppress(InstanceExists):
                actor = change.transitions[0].actor if change.transitions else change.actor
                data = rows[str(pk)].data if str(pk) in rows else None
                seen[str(pk)] = engine.create(attachment.machine, str(pk), data, actor=actor or ACTOR)
        notes[str(pk)] = (change.actor, "")
    calls = [_build_call(attachment, pk, one) for pk, change in changes.items() for one in change.transitions]
    if calls:
        for call, answer in zip(calls, engine.fire_many(calls), strict=True):
            if isinstance(answer, EngineUnavailable):
                raise answer
            if isinstance(answer, Instance):
                seen[call.id] = answer
            else:  # another commit came first, or a method does what it does not declare
                seen.pop(call.id, None)
            notes[call.id] = (call.actor, f"{call.event}" + (f": {call.reason}" if call.reason else ""))
    for id, text in settle(engine, attachment, list(changes), using, seen, notes).errors.items():
        log.warning("%s %s is not mirrored: %s", attachment.label, id, text)


def _build_call(attachment: Attachment, pk: Any, made: MadeTransition) -> Fire:
    declared = find_transition(attachment.transitions.get(made.event, {}), made.source)
    payload = None
    if declared is not None and is_open(attachment, declared):
        payload = {TARGET: attachment.states.find(made.target) or ""}
    return Fire(attachment.machine, str(pk), made.event, payload, actor=made.actor or ACTOR, reason=made.reason)


def read_rows(attachment: Attachment, pks: Iterable[Any], using: str) -> dict[str, Row]:
    """Return id -> its row, of those that are there."""
    rows = attachment.model._base_manager.using(using).filter(pk__in=list(pks))  # type: ignore[attr-defined]
    return {str(pk): row for pk, row in attachment.read(rows)}


def settle(
    engine: Engine,
    attachment: Attachment,
    pks: Iterable[Any],
    using: str,
    seen: dict[str, Instance] | None = None,
    notes: Mapping[str, tuple[str, str]] | None = None,
) -> SettledRows:
    """Put instances into the states of their rows, until a reading of both finds nothing to do. ``seen``: instances as
    this process has just left them; ``notes``: who and why, by id."""
    done, held = SettledRows(), seen or {}
    left = {str(pk): pk for pk in pks}
    for _ in range(TURNS):
        rows = read_rows(attachment, left.values(), using)
        _read_instances(engine, attachment, left, held)
        again = {}
        for id, pk in left.items():
            actor, why = (notes or {}).get(id, ("", ""))
            try:
                kind = _settle_one(engine, attachment, id, rows.get(id), held.pop(id, None), actor, why)
            except (Conflict, InstanceExists, UnknownInstance):
                again[id] = pk
                continue
            except EngineUnavailable:
                raise
            except SignalboxError as error:
                done.errors[id] = error.message
                continue
            if kind:
                done.kinds[kind] += 1
                again[id] = pk
        left = again
        if not left:
            return done
    done.errors.update(dict.fromkeys(left, "it changed all the time"))
    return done


def _read_instances(engine: Engine, attachment: Attachment, ids: Iterable[str], held: dict[str, Instance]) -> None:
    wanted = [id for id in ids if id not in held]
    for id, found in zip(wanted, engine.get_many(attachment.machine, wanted) if wanted else (), strict=True):
        if isinstance(found, Instance):
            held[id] = found
        elif not isinstance(found, UnknownInstance):
            raise found


def _settle_one(
    engine: Engine, attachment: Attachment, id: str, row: Row | None, live: Instance | None, actor: str, why: str
) -> str:
    """Write what differs; return what was done, "" where nothing was to do."""
    machine, who = attachment.machine, actor or ACTOR
    if row is None:
        if live is None:
            return ""
        engine.delete(machine, id, actor=who, reason="its row was deleted", expect=live.revision)
        return "removed"
    state = attachment.states.find(row.state)
    if state is None:
        raise BadInput(f"the row's state {row.state!r} is in no choice and no transition of {attachment.label}")
    if live is None:
        made = engine.create(machine, id, row.data, actor=who)
        if made.state != state:
            engine.force(machine, id, state, actor=who, reason=why or "the row was created", expect=made.revision)
        return "created"
    if live.state != state:
        engine.force(machine, id, state, actor=who, reason=why or f"the row says {state}", expect=live.revision)
        return "moved"
    if changes := row.list_changes(live.data, attachment.columns):
        engine.edit(machine, id, changes, actor=who, reason=why or "the row was saved", expect=live.revision)
        return "edited"
    return ""
