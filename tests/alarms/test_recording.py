"""The history of alarms: raised, worse, cleared; what people did lasts as long as the episode."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from machines.alarms.alarm import Alarm
from machines.alarms.recording import merge_states, record
from machines.models import AlarmEvent, AlarmState
from machines.retention import duty
from machines.signals import alarm_ended, alarm_raised
from tests.configuration import configure

pytestmark = pytest.mark.django_db
NOW = timezone.now()
KEY = "dead:order/pay"
LATER = timedelta(minutes=5)


def dead(severity: str = "warning", **more) -> Alarm:
    return Alarm(KEY, "dead", severity, "7 jobs dead on order/pay", "order", **more)


def events() -> list[str]:
    return list(AlarmEvent.objects.order_by("pk").values_list("event", flat=True))


def test_an_alarm_is_raised_once_and_keeps_its_age():
    assert record([dead()], now=NOW) == 1
    assert record([dead()], now=NOW + LATER) == 0
    (merged,) = merge_states([dead()], NOW + LATER)
    assert merged.since == int(NOW.timestamp() * 1000)
    assert events() == ["raised"]


def test_signals_tell_of_the_beginning_and_the_end_of_an_episode_after_the_commit(
    caplog, django_capture_on_commit_callbacks
):
    seen = []

    def receive(signal, sender, **facts):
        seen.append((signal, sender, {name: facts[name] for name in ("key", "kind", "machine", "severity", "at")}))
        raise RuntimeError("the receiver is broken")

    for signal in (alarm_raised, alarm_ended):
        signal.connect(receive)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            record([dead()], now=NOW)
            record([dead("critical")], now=NOW + LATER)
            assert seen == []
        with django_capture_on_commit_callbacks(execute=True):
            record([], now=NOW + 2 * LATER)
    finally:
        for signal in (alarm_raised, alarm_ended):
            signal.disconnect(receive)
    about = {"key": KEY, "kind": "dead", "machine": "order"}
    assert seen == [
        (alarm_raised, AlarmState, about | {"severity": "warning", "at": NOW}),
        (alarm_ended, AlarmState, about | {"severity": "critical", "at": NOW + 2 * LATER}),
    ]
    assert "the receiver is broken" in caplog.text


def test_what_the_figures_say_of_its_age_counts_where_it_is_older():
    begun = int((NOW - LATER).timestamp() * 1000)
    record([dead(since=begun)], now=NOW)
    assert merge_states([dead(since=begun)], NOW)[0].since == begun
    assert AlarmState.objects.get().first_seen == NOW - LATER or merge_states([dead()], NOW)[0].since == begun


def test_an_alarm_that_comes_back_is_a_new_episode_without_acknowledgement_and_owner():
    record([dead()], now=NOW)
    AlarmState.objects.update(owner="ann", acknowledged_by="ann", acknowledged_at=NOW)
    assert merge_states([dead()], NOW)[0].acknowledged_by == "ann"
    assert record([], now=NOW + LATER) == 1
    assert not AlarmState.objects.exists()
    record([dead()], now=NOW + 2 * LATER)
    (merged,) = merge_states([dead()], NOW + 2 * LATER)
    assert (merged.owner, merged.acknowledged_by) == ("", "")
    assert events() == ["raised", "cleared", "raised"]


def test_an_alarm_that_is_away_for_a_moment_is_the_same_episode():
    record([dead()], now=NOW)
    AlarmState.objects.update(acknowledged_by="ann")
    assert record([], now=NOW + timedelta(seconds=20)) == 0
    assert record([dead()], now=NOW + timedelta(seconds=25)) == 0
    assert merge_states([dead()], NOW + timedelta(seconds=25))[0].acknowledged_by == "ann"


def test_alarms_of_a_machine_that_cannot_be_read_are_not_over():
    record([dead()], now=NOW)
    assert record([], unknown={"order"}, now=NOW + LATER) == 0
    assert record([], unknown={"bill"}, now=NOW + LATER) == 1


def snoozed(until: timedelta) -> None:
    record([dead()], now=NOW)
    AlarmState.objects.update(snoozed_until=NOW + until, snoozed_by="ann", snoozed_severity="warning")


def test_a_snooze_expires():
    snoozed(LATER)
    assert merge_states([dead()], NOW)[0].is_snoozed
    assert not merge_states([dead()], NOW + LATER)[0].is_snoozed
    record([dead()], now=NOW + LATER)
    assert events() == ["raised", "expired"]
    assert AlarmState.objects.get().snoozed_until is None


def test_a_snooze_ends_when_the_severity_rises():
    snoozed(3 * LATER)
    assert not merge_states([dead("critical")], NOW + LATER)[0].is_snoozed
    record([dead("critical")], now=NOW + LATER)
    assert events() == ["raised", "worsened", "woken"]
    assert not merge_states([dead()], NOW + LATER)[0].is_snoozed


def test_a_snooze_outlives_the_episode_and_nothing_more():
    snoozed(3 * LATER)
    record([], now=NOW + LATER)
    assert AlarmState.objects.get().cleared_at == NOW + LATER
    record([dead()], now=NOW + 2 * LATER)
    assert merge_states([dead()], NOW + 2 * LATER)[0].is_snoozed
    record([], now=NOW + 4 * LATER)
    record([], now=NOW + 5 * LATER)
    assert not AlarmState.objects.exists()
    assert events() == ["raised", "cleared", "raised", "cleared", "expired"]


def test_the_history_is_kept_for_ninety_days_or_as_the_setting_says(settings):
    record([dead()], now=NOW - timedelta(days=91))
    record([dead()], now=NOW - timedelta(days=1))
    AlarmState.objects.all().delete()
    record([dead()], now=NOW - timedelta(days=1))
    assert duty.prune()["alarms"] == 1
    configure(settings, RETAIN="alarms=1h")
    assert duty.prune()["alarms"] == 1
    assert not AlarmEvent.objects.exists()
