"""Records what becomes of alarms in the database: raised, worsened, cleared, and what people did about them.

One row of ``AlarmState`` for each alarm that stands; ``AlarmEvent`` keeps the history. A worker calls ``record`` for
the whole installation; the actions of people make the row themselves where the worker has not seen the alarm yet.
"""

import secrets
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from machines.conf.database import prepare_check
from machines.connections import get_engine
from machines.engine.keys import get_machine
from machines.people.permissions import EVERYTHING
from machines.signals import alarm_ended, alarm_raised, notify

from .alarm import Alarm, rank_severity
from .models import AlarmEvent, AlarmState
from .queries import detect_alarms

Event = AlarmEvent.Event
SIGNALS = {Event.RAISED.value: alarm_raised, Event.CLEARED.value: alarm_ended}
GRACE = timedelta(seconds=30)  # an alarm that is away for less, as while a worker restarts, is the same episode
NO_SNOOZE: dict[str, Any] = {"snoozed_until": None, "snoozed_by": "", "snooze_reason": "", "snoozed_severity": ""}
NEW_EPISODE: dict[str, Any] = {"cleared_at": None, "owner": "", "acknowledged_by": "", "acknowledged_at": None}


def record_alarms() -> None:
    """Record which alarms of the installation are new, worse or over, as a duty of workers. Raises EngineUnavailable
    and errors of the database."""
    survey = get_engine().survey(trust=True)
    record(detect_alarms(EVERYTHING, survey), unknown={*survey.faults, *map(get_machine, survey.missing)})


_has_states = prepare_check(AlarmState.objects.all())


def record(alarms: Iterable[Alarm], *, unknown: Collection[str] = (), now: datetime | None = None) -> int:
    """Record which alarms of the whole installation are new, worse or over; return the number of events.

    ``unknown``: machines that could not be read; their alarms, and those of the whole installation, are not over.
    """
    now, standing = now or timezone.now(), {alarm.key: alarm for alarm in alarms}
    if not standing and not _has_states():
        return 0
    events: list[AlarmEvent] = []
    with transaction.atomic():
        rows = {row.key: row for row in AlarmState.objects.select_for_update()}
        for key, alarm in standing.items():
            events += _renew(rows.get(key), alarm, now)
        AlarmState.objects.filter(key__in=standing).update(last_seen=now)
        for key, row in rows.items():
            if key not in standing and not (unknown and (not row.machine or row.machine in unknown)):
                events += _clear(row, now)
            if row.snoozed_until is not None and row.snoozed_until <= now:
                events += _end_snooze(row, Event.EXPIRED, now)
        AlarmState.objects.filter(cleared_at__isnull=False, snoozed_until__isnull=True).delete()
        _write(events)
    return len(events)


def _write(events: list[AlarmEvent]) -> None:
    """Add events to the history; send the signals of those that begin or end an episode once they are written."""
    AlarmEvent.objects.bulk_create(events)
    for event in events:
        if signal := SIGNALS.get(event.event):
            facts = {name: getattr(event, name) for name in ("key", "kind", "machine", "severity", "at")}
            transaction.on_commit(partial(notify, signal, AlarmState, **facts))


def _renew(row: AlarmState | None, alarm: Alarm, now: datetime) -> list[AlarmEvent]:
    """Begin an episode where there is none; note a severity that rose, which also ends a snooze."""
    about = {name: getattr(alarm, name) for name in ("kind", "machine", "severity", "text", "count")}
    if row is None or row.cleared_at is not None:
        begun = about | NEW_EPISODE | {"first_seen": _begin_of(alarm, now), "last_seen": now}
        begun["episode"] = secrets.token_hex(8)
        held, _ = AlarmState.objects.update_or_create(key=alarm.key, defaults=begun)
        found = [_make_event(held, Event.RAISED, now)]
    else:
        held, found = row, []
        worse = rank_severity(alarm.severity) < rank_severity(row.severity)
        if row.severity != alarm.severity or row.text != alarm.text:
            AlarmState.objects.filter(pk=row.pk).update(**about)
            row.severity, row.text = alarm.severity, alarm.text
        if worse:
            found.append(_make_event(row, Event.WORSENED, now))
    if is_worse(held):
        found += _end_snooze(held, Event.WOKEN, now, reason="the severity rose")
    return found


def _begin_of(alarm: Alarm, now: datetime) -> datetime:
    return min(now, datetime.fromtimestamp(alarm.since / 1000, UTC)) if alarm.since > 0 else now


def is_worse(row: AlarmState) -> bool:
    """Return whether a snoozed alarm is worse than it was when it was snoozed."""
    return bool(row.snoozed_severity) and rank_severity(row.severity) < rank_severity(row.snoozed_severity)


def _clear(row: AlarmState, now: datetime) -> list[AlarmEvent]:
    if row.cleared_at is not None or now - row.last_seen < GRACE:
        return []
    AlarmState.objects.filter(pk=row.pk).update(**NEW_EPISODE | {"cleared_at": now})
    return [_make_event(row, Event.CLEARED, now)]


def _end_snooze(row: AlarmState, event: str, now: datetime, *, actor: str = "", reason: str = "") -> list[AlarmEvent]:
    AlarmState.objects.filter(pk=row.pk).update(**NO_SNOOZE)
    row.snoozed_until, row.snoozed_severity = None, ""
    return [_make_event(row, event, now, actor=actor, reason=reason)]


def _make_event(row: AlarmState, event: str, at: datetime, **more: Any) -> AlarmEvent:
    about = {"key": row.key, "kind": row.kind, "machine": row.machine, "severity": row.severity, "text": row.text}
    return AlarmEvent(at=at, event=event, **about, **more)


def merge_states(alarms: Iterable[Alarm], now: datetime | None = None) -> list[Alarm]:
    """Return the alarms with what people did about them, and the age that was recorded. One query."""
    now, alarms = now or timezone.now(), list(alarms)
    rows = {row.key: row for row in AlarmState.objects.filter(key__in=[alarm.key for alarm in alarms])}
    return [_merge(alarm, rows.get(alarm.key), now) for alarm in alarms]


def _merge(alarm: Alarm, row: AlarmState | None, now: datetime) -> Alarm:
    found = replace(alarm, **UNTOUCHED)
    if row is None:
        return found
    if row.cleared_at is None:
        begun = int(row.first_seen.timestamp() * 1000)
        found = replace(
            found, since=min(alarm.since, begun) if alarm.since else begun, owner=row.owner,
            acknowledged_by=row.acknowledged_by, acknowledged_at=_to_ms(row.acknowledged_at),
        )  # fmt: skip
    risen = bool(row.snoozed_severity) and rank_severity(alarm.severity) < rank_severity(row.snoozed_severity)
    if row.snoozed_until is None or row.snoozed_until <= now or risen:
        return found
    return replace(
        found, snoozed_until=_to_ms(row.snoozed_until), snoozed_by=row.snoozed_by, snooze_reason=row.snooze_reason
    )  # fmt: skip


UNTOUCHED: dict[str, Any] = {
    "owner": "", "acknowledged_by": "", "acknowledged_at": 0, "snoozed_until": 0, "snoozed_by": "", "snooze_reason": "",
}  # fmt: skip
"""The fields of an alarm that nobody did anything about."""


def _to_ms(at: datetime | None) -> int:
    return int(at.timestamp() * 1000) if at else 0


def ensure_state(alarm: Alarm, now: datetime) -> AlarmState:
    """Return the locked row of an alarm that stands; make it where no worker has seen the alarm yet. Inside a
    transaction."""
    row = AlarmState.objects.select_for_update().filter(pk=alarm.key).first()
    if row is None or row.cleared_at is not None:
        _write(_renew(row, alarm, now))
        row = AlarmState.objects.select_for_update().get(pk=alarm.key)
    return row


def write_event(row: AlarmState, event: str, now: datetime, **more: Any) -> None:
    """Add one event to the history of an alarm. ``more``: actor, owner, reason, until."""
    _make_event(row, event, now, **more).save()


def end_snooze(row: AlarmState, now: datetime, *, actor: str) -> None:
    """End a snooze before its time, by a person."""
    AlarmEvent.objects.bulk_create(_end_snooze(row, Event.WOKEN, now, actor=actor))
