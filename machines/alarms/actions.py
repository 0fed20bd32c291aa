"""Actions on alarms: acknowledge, assign an owner, snooze.

Each takes the right ``operate`` on the machine of the alarm, globally for one of the whole installation, and leaves an
audit entry.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from machines.connections import get_engine
from machines.engine.limits import MAX_REASON
from machines.people import limits, permissions
from machines.people.actor import Actor
from machines.people.errors import Forbidden

from .alarm import Alarm, read_machine, sort_alarms
from .errors import BadAlarmInput, UnknownAlarm
from .models import AlarmEvent, AlarmState
from .queries import detect_alarms
from .recording import end_snooze, ensure_state, merge_states, write_event

RIGHT = "operate"
SHORTEST, LONGEST = timedelta(minutes=1), timedelta(days=7)
Event = AlarmEvent.Event
Change = Callable[[AlarmState, datetime], dict[str, Any] | None]
"""Changes a row; returns the fields of the history's event, or None where nothing was to change."""


def list_alarms(actor: Actor) -> list[Alarm]:
    """List the alarms that the actor sees, the worst first, also those that are snoozed. Raises Forbidden,
    EngineUnavailable."""
    if not actor.anywhere("view"):
        raise Forbidden("view")
    scope = actor.scope("view")
    survey = get_engine().survey().only(scope)
    return sort_alarms(merge_states(detect_alarms(scope, survey)))


def get(actor: Actor, key: str) -> Alarm:
    """Return one alarm that stands now. Raises Forbidden, UnknownAlarm."""
    found = next((alarm for alarm in list_alarms(actor) if alarm.key == key), None)
    if found is None:
        raise UnknownAlarm(key)
    return found


def may_act(actor: Actor, alarm: Alarm) -> bool:
    """Return whether the actor may acknowledge, assign and snooze an alarm."""
    return actor.may(RIGHT, alarm.machine)


def acknowledge(actor: Actor, key: str) -> Alarm:
    """Note that the actor knows of an alarm. A second time changes nothing. The alarm of a clock that jumped ends with
    it. Raises Forbidden, UnknownAlarm."""

    def change(row: AlarmState, now: datetime) -> dict[str, Any] | None:
        if row.acknowledged_by:
            return None
        row.acknowledged_by, row.acknowledged_at = actor.name, now
        return {"event": Event.ACKNOWLEDGED}

    alarm = _change(actor, "alarm.acknowledge", key, change)
    if alarm.kind == "clock":
        get_engine().clock_jumps.acknowledge(alarm.subject)
    return alarm


def assign(actor: Actor, key: str, owner: str) -> Alarm:
    """Make an account the owner of an alarm; "" gives it up. Raises Forbidden, UnknownAlarm, BadAlarmInput."""

    def change(row: AlarmState, now: datetime) -> dict[str, Any] | None:
        if row.owner == owner:
            return None
        if owner and owner != actor.name:
            _check_owner(owner, row.machine)
        row.owner = owner
        return {"event": Event.ASSIGNED, "owner": owner}

    return _change(actor, "alarm.assign", key, change)


def snooze(actor: Actor, key: str, duration: timedelta, *, reason: str) -> Alarm:
    """Take an alarm out of list and counts for a while, or until its severity rises. Raises Forbidden, UnknownAlarm,
    BadAlarmInput."""

    def change(row: AlarmState, now: datetime) -> dict[str, Any] | None:
        if not SHORTEST <= duration <= LONGEST:
            raise BadAlarmInput("an alarm can be snoozed for a minute to seven days")
        if not reason.strip() or len(reason) > MAX_REASON or "\x00" in reason:
            raise BadAlarmInput(f"snoozing needs a reason of 1 to {MAX_REASON} characters")
        row.snoozed_until, row.snoozed_by = now + duration, actor.name
        row.snooze_reason, row.snoozed_severity = reason.strip(), row.severity
        return {"event": Event.SNOOZED, "reason": row.snooze_reason, "until": row.snoozed_until}

    return _change(actor, "alarm.snooze", key, change, reason=reason)


def wake(actor: Actor, key: str) -> Alarm:
    """End a snooze before its time. Raises Forbidden, UnknownAlarm."""

    def change(row: AlarmState, now: datetime) -> dict[str, Any] | None:
        if row.snoozed_until is not None:
            end_snooze(row, now, actor=actor.name)
            row.refresh_from_db()
            return {}
        return None

    return _change(actor, "alarm.wake", key, change)


def _change(actor: Actor, action: str, key: str, change: Change, *, reason: str = "") -> Alarm:
    """Change the state of an alarm that stands, with right, rate, history and audit; return it afterwards."""
    about = {"machine": read_machine(key), "target": key}
    if actor.may(RIGHT, about["machine"]):
        limits.spend_rate(actor, action, **about)
    with actor.records(action, **about, reason=reason) as entry:
        actor.demand(RIGHT, about["machine"])  # before the look-up: what stands is not for everybody to know
        alarm, now = get(actor, key), timezone.now()
        with transaction.atomic():
            row = ensure_state(alarm, now)
            changes = change(row, now)
            if changes is None:
                entry.void()
            else:
                row.save()
                if changes:
                    write_event(row, **changes, now=now, actor=actor.name)
                    entry.note(
                        **{name: _convert(value) for name, value in changes.items() if name in ("owner", "until")}
                    )
    return merge_states([alarm], now)[0]


def _convert(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _check_owner(owner: str, machine: str) -> None:
    users = get_user_model()
    found = users._default_manager.filter(**{users.USERNAME_FIELD: owner, "is_active": True}).first()
    if found is None or not (
        permissions.allows(found, "view", machine) if machine else permissions.anywhere(found, "view")
    ):
        about = f"the machine {machine}" if machine else "any machine"
        raise BadAlarmInput(f"{owner[:150]!r} is no active account that may see {about}")


def history(actor: Actor, *, machine: str = "", kind: str = "", event: str = "", key: str = "") -> QuerySet[AlarmEvent]:
    """Return the history of the alarms that the actor sees, newest first. Events of the whole installation name other
    machines, so that only who sees all machines gets them. Raises Forbidden."""
    if not actor.anywhere("view"):
        raise Forbidden("view")
    scope = actor.scope("view")
    found = AlarmEvent.objects.all() if scope.all else AlarmEvent.objects.filter(machine__in=scope.names)
    wanted = {"machine": machine, "kind": kind, "event": event, "key": key}
    return found.filter(**{name: value for name, value in wanted.items() if value})
