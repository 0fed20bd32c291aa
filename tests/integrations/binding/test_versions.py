"""Rows whose instances are moved to a version in which their state has another name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from machines.engine import Refused
from machines.fields import available_events
from machines.integrations.binding.reconcile import Reconcile
from machines.retention.duty import RetentionDuty
from machines.signals import delivered, stepped

from .machines import ORDER

pytestmark = pytest.mark.django_db(transaction=True)
DAY = 86_400_000
RENAMED = {"new": "open", "cancelled": "stopped"}


def second() -> dict[str, Any]:
    """The second version: *new* is called *open*, *cancelled* is called *stopped*."""
    text = json.dumps(ORDER)
    for old, name in RENAMED.items():
        text = text.replace(f'"{old}"', f'"{name}"')
    found: dict[str, Any] = json.loads(text)
    return found


def order(**fields):
    from .shop.models import Order

    return Order.objects.create(**fields)


def stored(row) -> tuple[str, int]:
    return type(row).objects.values_list("status", "status_revision").get(pk=row.pk)


def move(engine):
    engine.publish(second())
    moved = engine.migrate(engine.plan("order", 2, states=RENAMED), actor="ann", reason="names")
    assert moved.refused == []
    return moved


@pytest.fixture
def told():
    found: list[tuple] = []

    def note(sender, instance, event, state, revision, **_):
        found.append((instance, event, state, revision))

    stepped.connect(note)
    yield found
    stepped.disconnect(note)


def test_the_column_and_the_signal_follow_a_move_by_the_log(machines_there, project, told):
    row, paid = order(), order()
    paid.status.fire("pay", {"amount": 0})
    project()
    told.clear()
    move(machines_there)
    project()
    assert (stored(row), stored(paid)) == (("open", 2), ("paid", 3))
    assert sorted(told) == sorted([(str(row.pk), "(migrate)", "open", 2), (str(paid.pk), "(migrate)", "paid", 3)])


def test_events_are_fired_and_listed_in_the_new_version_before_and_after_the_column_follows(machines_there, project):
    row = order(total=5)
    move(machines_there)
    names = ["pay", "cancel", "note", "waive"]
    assert (row.status, [event.name for event in row.status.available()]) == ("new", names)
    project()
    row.refresh_from_db()
    assert (row.status, [event.name for event in row.status.available()]) == ("open", names)
    assert [[event.name for event in found] for found in available_events([row.status])] == [names]
    with pytest.raises(Refused, match="amount"):
        row.status.fire("pay", {"amount": 1})
    assert row.status.fire("cancel").state == "stopped"
    project()
    assert stored(row) == ("stopped", 3)
    assert [step.event for step in row.status.history()] == ["cancel", "(migrate)", "(create)"]


def test_a_list_takes_rows_of_states_that_the_current_version_does_not_have(machines_there, project):
    kept, moved = order(), order()
    machines_there.publish(second())
    machines_there.pin_instance("order", str(kept.pk), actor="ann", reason="audit")
    machines_there.migrate(machines_there.plan("order", 2, states=RENAMED), actor="ann", reason="names")
    project()
    for row in (kept, moved):
        row.refresh_from_db()
    assert (kept.status, moved.status) == ("new", "open")
    assert [[event.name for event in found] for found in available_events([kept.status, moved.status])] == [
        [],
        ["pay", "cancel", "note", "waive"],
    ]
    assert "<svg" in kept.status.diagram()
    assert "<svg" in moved.status.diagram()
    assert kept.status.fire("cancel").state == "cancelled"
    assert stored(kept) == ("cancelled", 3)


def test_the_way_back_is_two_more_steps_for_the_row(machines_there, project, told):
    row = order()
    machines_there.publish(second())
    plan = machines_there.plan("order", 2, states=RENAMED)
    machines_there.migrate(plan, actor="ann", reason="names")
    machines_there.migrate(plan.inverse(), actor="ann", reason="wrong")
    project()
    assert stored(row) == ("new", 3)
    assert [(event, state) for _, event, state, _ in told] == [
        ("(create)", "new"), ("(migrate)", "open"), ("(migrate)", "new")
    ]  # fmt: skip


def test_an_event_that_waits_for_a_commit_arrives_in_the_new_version(machines_there, project, deliver):
    from django.db import transaction

    row = order()
    arrived: list[tuple] = []

    def note(sender, **facts):
        arrived.append((facts["entry"].instance, facts["entry"].event, facts["entry"].state))

    delivered.connect(note)
    try:
        with transaction.atomic():
            row.status.fire("cancel")
            move(machines_there)
        deliver()
    finally:
        delivered.disconnect(note)
    project()
    assert stored(row) == ("stopped", 3)
    assert len(arrived) == 1


def test_comparing_mends_rows_that_no_log_told(machines_there):
    row = order()
    move(machines_there)
    dry = Reconcile(machines_there, row.status.field, dry_run=True).run()
    assert (dry.counts["behind"], stored(row)) == (1, ("new", 1))
    report = Reconcile(machines_there, row.status.field).run()
    assert (report.counts["behind"], report.left, stored(row)) == (1, 0, ("open", 2))


def test_a_row_that_ended_in_a_state_of_an_earlier_version_is_not_lost(machines_there):
    row = order()
    machines_there.publish(ORDER | {"retain": "1d"})
    at = machines_there.emitted_logs().now() - 2 * DAY
    machines_there.delete("order", str(row.pk), reason="anew")
    machines_there.create("order", str(row.pk), now=at)
    machines_there.fire("order", str(row.pk), "cancel", now=at)
    row.status.refresh()
    assert row.status == "cancelled"
    machines_there.publish(second() | {"retain": "1d"})
    duty = RetentionDuty(machines_there)
    while duty.run_once():
        pass
    report = Reconcile(machines_there, row.status.field, create_missing=True).run()
    assert (report.counts["gone"], report.lost, report.recreated) == (1, 0, 0)
    assert row.status == "cancelled"
