"""Sends entries of the outbox: in order for each instance, each once, whichever process dies in between.

An entry is claimed for a minute before it is sent, and sent with an idempotency key of its own, so that a second
process that takes it over gets the first outcome. A step also expects the revision that was read with the claim: a
process that stood still past its claim does not send an event behind later ones.

The engine forgets keys after a day. An entry whose first attempt is older than that is looked for in the history of the
instance, and is sent again only where the history shows that it never arrived.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Exists, Model, OuterRef, QuerySet
from django.utils import timezone

from machines import signals
from machines.approvals import actions as approvals
from machines.audit import redaction
from machines.catalog.errors import ApprovalNeeded
from machines.catalog.queries import outline_of
from machines.connections import get_engine
from machines.engine import (
    BadInput,
    Conflict,
    EngineFault,
    EngineUnavailable,
    Instance,
    InstanceExists,
    SignalboxError,
    Suspended,
    UnknownInstance,
    UnknownMachine,
)
from machines.engine.limits import MAX_HISTORY
from machines.instances import actions as instances
from machines.people.actor import Actor
from machines.people.errors import TooFast

from . import following, registry, state_columns
from .errors import ColumnGone
from .models import OutboxEntry

if TYPE_CHECKING:
    from .field import MachineField

log = logging.getLogger(__name__)

BATCH = 50  # entries of one pass, each of another instance
LEASE = timedelta(seconds=60)
REMEMBERED = timedelta(hours=23)  # the engine keeps the outcome of a key for 24
LONGEST = 60.0  # seconds between two attempts
TURNS = 20  # attempts in which an instance that others move is read again
AWAY = 1.0  # seconds for which a process leaves sending to others after Redis did not answer
SAID = 2000  # characters of a message
DOOR = "program"  # of the audit
LATER = (EngineUnavailable, EngineFault, Suspended, TooFast, UnknownMachine, ColumnGone)
"""What may pass: the entry is tried again."""

State, Kind = OutboxEntry.State, OutboxEntry.Kind
_away_until = 0.0


@dataclass(frozen=True, slots=True)
class Claim:
    """An entry that this process may send until ``until``. ``revision``: of its instance at the claim."""

    entry: OutboxEntry
    field: MachineField
    using: str
    until: datetime
    revision: int | None


@dataclass(frozen=True, slots=True)
class EndedEntry:
    """How an entry ended. ``state`` and ``revision``: of the instance afterwards, where that is known."""

    outcome: str
    state: str | None = None
    revision: int | None = None
    message: str = ""
    error: Exception | None = None


def send_soon(field: MachineField, entry: OutboxEntry, using: str, row: Model | None) -> None:
    """Send what waits for one instance, in the process that asked. What fails is left to a worker."""
    if is_away():
        return
    try:
        while send_due(using, instance=(entry.machine, entry.instance)):
            pass
    except EngineUnavailable as error:
        note_away()
        log.info("%s is left for a worker: %s", entry, error)
    if row is None or row.pk is None:
        return
    entry.refresh_from_db(using=using)
    if (seen := state_columns.read(field, [entry.instance], using).get(entry.instance)) is not None and seen.revision:
        state_columns.remember(field, row, seen.state, seen.revision)


def is_away() -> bool:
    """Tell whether Redis did not answer a moment ago."""
    return time.monotonic() < _away_until


def note_away() -> None:
    """Have this process leave Redis alone for a moment."""
    global _away_until
    _away_until = time.monotonic() + AWAY


def send_due(using: str, *, instance: tuple[str, str] | None = None) -> int:
    """Send what is due, of each instance its oldest entry; return how many were sent. Raises EngineUnavailable."""
    claims = claim(using, instance=instance)
    for each in claims:
        send(each)
    return len(claims)


# Claiming


def claim(using: str, *, instance: tuple[str, str] | None = None) -> list[Claim]:
    """Take entries that are due. Two processes never hold one within its lease."""
    now = timezone.now()
    with transaction.atomic(using=using) if registry.locks_rows(using) else contextlib.nullcontext():
        found = list(_heads(using, now, instance)[:BATCH])
        revisions = _revisions(found)
        return [
            Claim(entry, field, using, now + LEASE, revision)
            for entry, revision in zip(found, revisions, strict=True)
            if (field := registry.require_field(entry, using)) and _take(entry, using, now, revision)
        ]


def _heads(using: str, now: datetime, instance: tuple[str, str] | None) -> QuerySet[OutboxEntry]:
    """Return the oldest waiting entry of each instance, as far as it is due."""
    waiting = OutboxEntry.objects.using(using).filter(state=State.WAITING)
    earlier = waiting.filter(machine=OuterRef("machine"), instance=OuterRef("instance"), pk__lt=OuterRef("pk"))
    found = waiting.filter(~Exists(earlier), due__lte=now).order_by("pk")
    if instance is not None:
        found = found.filter(machine=instance[0], instance=instance[1])
    return found.select_for_update(skip_locked=True) if registry.locks_rows(using) else found


def _revisions(entries: list[OutboxEntry]) -> list[int | None]:
    """Return the revision of each entry's instance; None where there is none. One round trip for each machine."""
    found: dict[int, int] = {}
    for machine in dict.fromkeys(entry.machine for entry in entries if entry.kind != Kind.CREATE):
        asked = [entry for entry in entries if entry.machine == machine and entry.kind != Kind.CREATE]
        with contextlib.suppress(UnknownMachine):
            read = get_engine().get_many(machine, [entry.instance for entry in asked])
            found |= {e.pk: one.revision for e, one in zip(asked, read, strict=True) if isinstance(one, Instance)}
    return [found.get(entry.pk) for entry in entries]


def _take(entry: OutboxEntry, using: str, now: datetime, revision: int | None) -> bool:
    claim, tried = secrets.token_hex(16), entry.tried_at or now
    seen = entry.seen if entry.tried_at else revision
    same = OutboxEntry.objects.using(using).filter(pk=entry.pk, state=State.WAITING, claim=entry.claim, due=entry.due)
    if not same.update(claim=claim, due=now + LEASE, tries=entry.tries + 1, tried_at=tried, seen=seen):
        return False
    entry.claim, entry.tries, entry.tried_at, entry.seen = claim, entry.tries + 1, tried, seen
    return True


def _is_ours(claim: Claim) -> bool:
    held = OutboxEntry.objects.using(claim.using).filter(pk=claim.entry.pk, claim=claim.entry.claim)
    return timezone.now() < claim.until and held.filter(state=State.WAITING).exists()


# Sending


def send(claim: Claim) -> None:
    """Send one entry and record the outcome."""
    try:
        ended = _carry_out(claim)
    except LATER as error:
        _postpone(claim, error)
    except SignalboxError as error:
        if isinstance(error, Conflict) and claim.entry.kind != Kind.FIRE:  # others move the instance all the time
            _postpone(claim, error)
            return
        _end(claim, EndedEntry(error.code, message=redact_message(claim.entry.machine, error), error=error))
    except Exception as error:
        log.exception("%s could not be sent; it is tried again", claim.entry)
        _postpone(claim, error)
    else:
        if ended is None:
            log.info("%s is another process's by now", claim.entry)
        else:
            _end(claim, ended)


def _carry_out(claim: Claim) -> EndedEntry | None:
    """Send it; None where another process has it by now."""
    entry = claim.entry
    if entry.kind != Kind.FIRE:
        return {Kind.CREATE: _create, Kind.FOLLOW: _follow, Kind.DELETE: _delete}[Kind(entry.kind)](claim)
    is_old = entry.tried_at is not None and timezone.now() - entry.tried_at > REMEMBERED
    if is_old and (found := _find_in_history(entry)) is not None:
        return found
    for expect in _expectations(claim):
        try:
            after = _fire(claim, expect)
        except Conflict:
            if entry.expect is not None and _find_expected(claim) == expect:
                raise
        except UnknownInstance:
            if not ensure_instance(claim.field, entry.instance, claim.using):
                raise
        except ApprovalNeeded as needed:
            asked = approvals.ask(_person(entry), needed)  # BadInput where there is no reason
            return EndedEntry("approval", message=f"request {asked.pk} waits for a second person")
        else:
            return EndedEntry("applied", after.state, after.revision)
    return None


def _delete(claim: Claim) -> EndedEntry:
    entry = claim.entry
    with contextlib.suppress(UnknownInstance):
        get_engine().delete(entry.machine, entry.instance, reason=entry.reason)
    return EndedEntry("applied")


def _follow(claim: Claim) -> EndedEntry:
    """Bring an instance up to its row; one that is missing is created from it, or is gone for good."""
    field, id, using = claim.field, claim.entry.instance, claim.using
    try:
        there, _ = following.follow(field, id, using)
    except UnknownInstance:
        ensure_instance(field, id, using)
        try:  # another process may have created it meanwhile, with earlier values
            there, _ = following.follow(field, id, using)
        except UnknownInstance:
            return EndedEntry("applied")
    return EndedEntry("applied", there.state, there.revision)


def _create(claim: Claim) -> EndedEntry:
    entry = claim.entry
    try:
        made = _create_from(claim.field, entry, claim.using)
    except InstanceExists:
        there = get_engine().get(entry.machine, entry.instance)
        ended = _judge_found(claim.field, entry, there)
        there, _ = following.follow(claim.field, entry.instance, claim.using)
        return replace(ended, state=there.state, revision=there.revision)
    return EndedEntry("applied", made.state, made.revision)


def _create_from(field: MachineField, entry: OutboxEntry, using: str) -> Instance:
    """Create the instance of an entry, with the entry's key, so that the entry finds its own work later."""
    id = entry.instance
    return _create_in_state(field, id, using, entry.payload, entry.event, key=entry.key, reason=entry.reason)


def _create_in_state(
    field: MachineField,
    id: str,
    using: str,
    given: Mapping[str, Any],
    state: str,
    *,
    key: str | None = None,
    reason: str = "",
) -> Instance:
    """Create an instance with the data ``given`` and the columns that the field follows, in the state that its row had
    before, "" for the initial one. Raises BadInput where the machine does not have it: nothing is created then, and the
    row keeps it."""
    engine, machine = get_engine(), field.machine
    data = dict(given) | following.read_set(field, [id], using).get(id, {})
    if state and outline_of(machine, engine.live(machine).version).state(state) is None:
        raise BadInput(
            f"the row is in {state!r}, which {machine} does not have: publish a definition with that state, or write"
            " another one into the column"
        )
    made = engine.create(machine, id, data, key=key, reason=reason)
    if not state or made.state == state:
        return made
    why = "the row was in this state before"
    return engine.force(machine, id, state, actor="row", reason=why, key=f"{key}:state" if key else None)


def _judge_found(field: MachineField, entry: OutboxEntry, there: Instance) -> EndedEntry:
    """Return how a creation ends where an instance of the id is there that it has not made: the row shows that one. One
    that has moved belonged to something else, an earlier row or an earlier database."""
    was = (
        f"machine {entry.machine!r} had an instance {entry.instance!r} before: {there.state}, revision {there.revision}"
    )
    is_new = there.revision <= 1 or (field.follows and following.pass_edits(field, there.id, 1) == there.revision)
    if is_new or (entry.tried_at is not None and timezone.now() - entry.tried_at > REMEMBERED):
        log.info("%s; the row shows it", was)
        return EndedEntry("exists", there.state, there.revision)
    advice = "delete the instance and make the row again, or give the row another id"
    text = f"{was}. The row shows that one. Where it is not the row's, {advice}"
    return EndedEntry("exists", there.state, there.revision, text, InstanceExists(entry.machine, entry.instance))


def _expectations(claim: Claim) -> Iterator[int | None]:
    """Yield the revision to expect at each attempt; ends where another process has the entry."""
    entry = claim.entry
    yield claim.revision if entry.expect is None else entry.expect
    for _ in range(TURNS):
        if not _is_ours(claim):
            return
        yield _find_expected(claim)


def _find_expected(claim: Claim) -> int:
    """Return the revision that the caller expects; the present one where they named none, or only the row was followed
    since."""
    entry = claim.entry
    if entry.expect is None:
        return get_engine().get(entry.machine, entry.instance).revision
    return following.pass_edits(claim.field, entry.instance, entry.expect) if claim.field.follows else entry.expect


def _fire(claim: Claim, expect: int | None) -> Instance:
    entry = claim.entry
    if claim.field.follows:
        _, expect = following.follow(claim.field, entry.instance, claim.using, expect)
    machine, id, event, payload = entry.machine, entry.instance, entry.event, entry.payload
    if entry.user_id:
        return instances.fire(
            _person(entry), machine, id, event, payload, expect=expect, key=entry.key, reason=entry.reason, shows=False
        )
    return get_engine().fire(
        machine, id, event, payload, expect=expect, key=entry.key, actor=entry.actor, reason=entry.reason
    )


def _person(entry: OutboxEntry) -> Actor:
    """Return the user who fired. Raises BadInput where the account is gone."""
    user = get_user_model()._default_manager.filter(pk=entry.user_id).first()
    if user is None:
        raise BadInput(f"the account {entry.actor} that fired {entry.event} no longer exists")
    return Actor(user, DOOR)


def ensure_instance(field: MachineField, id: str, using: str) -> bool:
    """Create the instance of a row that has none yet; False where there is no such row, or it had an instance."""
    value = state_columns.parse_id(field, id)
    row = None if value is None else state_columns.rows(field, using).filter(**{field.id_field.attname: value}).first()
    if row is None or getattr(row, field.revision_name):
        return False
    waiting = OutboxEntry.objects.using(using).filter(
        machine=field.machine, instance=id, kind=Kind.CREATE, state=State.WAITING
    )
    entry = waiting.order_by("pk").first()
    with contextlib.suppress(InstanceExists):
        if entry is None:
            _create_in_state(field, id, using, field.creation_data(row), state_columns.earlier_state(field, row))
        else:
            _create_from(field, entry, using)
    return True


def _find_in_history(entry: OutboxEntry) -> EndedEntry | None:
    """Return what became of an entry that was sent more than a day ago; None where it never arrived."""
    seen = entry.seen or 0
    try:
        newest = get_engine().get(entry.machine, entry.instance).revision
        steps = get_engine().history(entry.machine, entry.instance, limit=MAX_HISTORY)
    except UnknownInstance:
        return EndedEntry("unknown", message="it was sent, and the instance is gone: whether it arrived cannot be told")
    later = [step for step in steps if step.revision > seen]
    for step in later:
        if (step.event, step.payload, step.reason) == (entry.event, entry.payload, entry.reason):
            return EndedEntry("applied", ", ".join(step.configuration), step.revision, "found in the history")
    if len(later) >= newest - seen:
        return None
    return EndedEntry("unknown", message="it was sent, and the history no longer goes back to that moment")


# The outcome


def redact_message(machine: str, error: SignalboxError) -> str:
    """Return the message without values of sensitive fields."""
    try:
        return redaction.strict_redactor(machine).error(error)
    except SignalboxError:  # which fields those are cannot be read
        return f"{type(error).__name__} ({error.code})"


def _postpone(claim: Claim, error: Exception) -> None:
    pause = timedelta(seconds=min(LONGEST, 2.0 ** min(claim.entry.tries, 10) / 2))
    log.info("%s is tried again in %s: %s", claim.entry, pause, error)
    _update(claim, due=timezone.now() + pause, message=str(error)[:SAID])


def _end(claim: Claim, ended: EndedEntry) -> None:
    """Write the outcome and the row's columns together."""
    entry, field, using = claim.entry, claim.field, claim.using
    fine = ended.error is None and ended.outcome != "unknown"
    facts: dict[str, Any] = {
        "state": State.DONE if fine else State.FAILED, "outcome": ended.outcome[:10],
        "message": ended.message[:SAID].replace("\0", "\\0"), "revision": ended.revision, "payload": {},
        "ended_at": timezone.now(),
    }  # fmt: skip
    with transaction.atomic(using=using):
        if ended.state is not None and ended.revision is not None:
            state_columns.advance(field, entry.instance, ended.state, ended.revision, using)
        if not _update(claim, **facts):
            return
    for name, value in facts.items():
        if name != "payload":  # receivers of the signal still see what was asked
            setattr(entry, name, value)
    if not fine:
        log.warning("%s failed: %s", entry, ended.message)
    signals.notify(signals.delivered, field.model, entry=entry, error=ended.error)


def _update(claim: Claim, **facts: Any) -> bool:
    held = OutboxEntry.objects.using(claim.using).filter(pk=claim.entry.pk, claim=claim.entry.claim)
    return held.filter(state=State.WAITING).update(**facts) > 0
