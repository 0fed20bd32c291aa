"""Acknowledge, assign and snooze: rights, reasons, history and audit."""

from __future__ import annotations

from datetime import timedelta

import pytest

from machines.alarms import actions as alarms
from machines.alarms import errors, recording
from machines.engine.jobs.clock_jump import ClockJump
from machines.models import AlarmEvent, AuditEntry
from machines.people.errors import Forbidden

from .conftest import KEY

HOUR = timedelta(hours=1)


def audited() -> list[tuple[str, str, str, str]]:
    return list(AuditEntry.objects.order_by("pk").values_list("action", "machine", "target", "outcome"))


def events() -> list[tuple[str, str]]:
    return list(AlarmEvent.objects.order_by("pk").values_list("event", "actor"))


def test_an_alarm_is_acknowledged_once(desk, actor_of):
    ann = actor_of("supervisor", "ann")
    assert alarms.acknowledge(ann, KEY).acknowledged_by == "ann"
    assert alarms.acknowledge(actor_of("supervisor", "bob"), KEY).acknowledged_by == "ann"
    assert events() == [("raised", ""), ("acknowledged", "ann")]
    assert audited() == [("alarm.acknowledge", "desk", KEY, "done")]


def test_the_alarm_of_a_clock_that_was_set_ends_when_somebody_acknowledges_it(engine, actor_of):
    engine.clock_jumps.note(ClockJump("", 1_000, 3_601_000, "w1"))
    ann = actor_of("supervisor", "ann")
    key = next(alarm.key for alarm in alarms.list_alarms(ann) if alarm.kind == "clock")
    assert alarms.acknowledge(ann, key).acknowledged_by == "ann"
    assert not any(alarm.kind == "clock" for alarm in alarms.list_alarms(ann))
    assert engine.clock_jumps.read()[0].acknowledged, "workers know of it further"


def test_an_alarm_has_an_owner(desk, actor_of):
    ann = actor_of("supervisor", "ann")
    actor_of("viewer", "bob")
    assert alarms.assign(ann, KEY, "ann").owner == "ann"
    assert alarms.assign(ann, KEY, "bob").owner == "bob"
    assert alarms.assign(ann, KEY, "").owner == ""
    assert AuditEntry.objects.order_by("pk")[1].detail["owner"] == "bob"
    assert list(AlarmEvent.objects.order_by("pk").values_list("owner", flat=True)) == ["", "ann", "bob", ""]


@pytest.mark.parametrize("owner", ["nobody", "stranger"])
def test_an_owner_is_an_account_that_may_see_it(desk, actor_of, owner):
    actor_of("none", "stranger")
    with pytest.raises(errors.BadAlarmInput, match="no active account"):
        alarms.assign(actor_of("supervisor"), KEY, owner)


def test_a_snooze_takes_it_out_until_it_is_ended(desk, actor_of):
    ann = actor_of("supervisor", "ann")
    snoozed = alarms.snooze(ann, KEY, HOUR, reason="the supplier knows")
    assert (snoozed.is_snoozed, snoozed.snoozed_by, snoozed.snooze_reason) == (True, "ann", "the supplier knows")
    assert not alarms.wake(ann, KEY).is_snoozed
    assert events() == [("raised", ""), ("snoozed", "ann"), ("woken", "ann")]
    assert [entry[0] for entry in audited()] == ["alarm.snooze", "alarm.wake"]
    assert AuditEntry.objects.order_by("pk")[0].reason == "the supplier knows"


@pytest.mark.parametrize(
    ("duration", "reason"), [(HOUR, " "), (timedelta(seconds=59), "x"), (timedelta(days=8), "x"), (HOUR, "x" * 1001)]
)
def test_a_snooze_takes_a_reason_and_ends(desk, actor_of, duration, reason):
    with pytest.raises(errors.BadAlarmInput):
        alarms.snooze(actor_of("supervisor"), KEY, duration, reason=reason)
    assert [entry[3] for entry in audited()] == ["refused"]


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_it_takes_the_right_to_operate(desk, actor_of, role):
    with pytest.raises(Forbidden):
        alarms.acknowledge(actor_of(role), KEY)
    assert audited() == [("alarm.acknowledge", "desk", KEY, "refused")]
    assert not AlarmEvent.objects.filter(event="acknowledged").exists()


def test_an_alarm_that_does_not_stand_is_unknown(desk, actor_of, engine):
    supervisor = actor_of("supervisor")
    engine.fire("desk", "old", "take")
    with pytest.raises(errors.UnknownAlarm):
        alarms.acknowledge(supervisor, KEY)


def test_the_worker_records_and_the_history_is_of_machines_in_scope(desk, actor_of):
    recording.record_alarms()
    assert [event.key for event in alarms.history(actor_of("viewer"))] == [KEY]
    with pytest.raises(Forbidden):
        alarms.history(actor_of("none"))
