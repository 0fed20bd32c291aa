"""Columns follow the logs, whoever moved the instance; comparing mends what no log tells."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from machines.engine import EngineFault
from machines.engine.keys import Partition
from machines.fields import available_events
from machines.integrations.binding.projection import Projection
from machines.integrations.binding.reconcile import Reconcile
from machines.integrations.binding.state_columns import MirroredRevision, MirroredText
from machines.signals import stepped

from . import machines
from .conftest import Reading

pytestmark = pytest.mark.django_db(transaction=True)
DAY = 86_400_000


def order(**fields):
    from .shop.models import Order

    return Order.objects.create(**fields)


def edit(row, state: str, revision: int) -> None:
    """As SQL by hand would."""
    type(row).objects.filter(pk=row.pk).update(status=MirroredText(state), status_revision=MirroredRevision(revision))


def stored(row) -> tuple[str, int]:
    return type(row).objects.values_list("status", "status_revision").get(pk=row.pk)


def die(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def steps():
    """What the signal told: id, event, state and revision of each step."""
    told: list[tuple] = []

    def note(sender, instance, event, state, revision, **_):
        told.append((instance, event, state, revision))

    stepped.connect(note)
    yield told
    stepped.disconnect(note)


def test_steps_of_other_programs_and_of_timers_reach_the_row(machines_there, project):
    paid, expired = order(), order()
    machines_there.fire("order", str(paid.pk), "pay", {"amount": 0})
    created = machines_there.get("order", str(expired.pk)).created
    machines_there.tick("order", now=created + 31 * DAY)
    project()
    assert (stored(paid), stored(expired)) == (("paid", 2), ("expired", 2))


def test_a_signal_follows_each_step_in_order(machines_there, project, steps):
    row = order()
    id = str(row.pk)
    row.status.fire("note")
    machines_there.fire("order", id, "pay", {"amount": 0})
    project()
    assert steps == [(id, "(create)", "new", 1), (id, "note", "new", 2), (id, "pay", "paid", 3)]


def test_what_a_receiver_raises_does_not_stop_the_columns(machines_there, project, caplog):
    def fail(**_):
        raise ZeroDivisionError

    row = order()
    stepped.connect(fail)
    try:
        machines_there.fire("order", str(row.pk), "cancel")
        project()
    finally:
        stepped.disconnect(fail)
    assert stored(row) == ("cancelled", 2)
    assert "receiver" in caplog.text


def test_an_earlier_step_never_replaces_a_later_one(machines_there, project):
    row = order()
    machines_there.fire("order", str(row.pk), "note")
    row.status.fire("cancel")
    project()
    assert stored(row) == ("cancelled", 3)


def test_a_worker_that_dies_before_it_acknowledges_leaves_its_entries_to_the_next(machines_there, project, monkeypatch):
    row = order()
    machines_there.fire("order", str(row.pk), "cancel")
    project.end()
    dead = Reading(machines_there)
    with monkeypatch.context() as patch:
        patch.setattr("machines.integrations.binding.projection.apply_steps", die)
        with pytest.raises(KeyboardInterrupt):
            dead()
    dead.end()
    Reading(machines_there)()
    assert stored(row) == ("cancelled", 2)


def test_a_worker_that_ends_with_its_work_writes_the_columns_and_leaves_the_field(machines_there, project):
    row = order()
    machines_there.fire("order", str(row.pk), "cancel")
    project.end()
    Projection(machines_there, wait=0.0).finish()
    assert stored(row) == ("cancelled", 2)
    other = Projection(machines_there, wait=0.0)
    other.look()
    assert list(other._locks) != []


def test_only_one_worker_reads_the_logs_of_a_field(machines_there, project):
    other = Projection(machines_there, wait=0.0)
    assert not other.look()
    assert other._locks == {}


def test_what_happened_before_the_steps_were_logged_is_found_by_comparing(machines_there):
    row = order()
    machines_there.fire("order", str(row.pk), "cancel")
    Reading(machines_there)()
    assert stored(row) == ("cancelled", 2)


def test_after_the_log_was_lost_the_rows_are_compared(machines_there, project):
    row = order()
    machines_there.fire("order", str(row.pk), "cancel")
    place = Partition(machines_there.emitted_logs().root(("order", 0)))
    machines_there.client.delete(place.log)
    machines_there.fire("order", str(order().pk), "note")
    project.look_again()
    project()
    assert stored(row) == ("cancelled", 2)


def test_a_comparison_that_was_interrupted_begins_anew(machines_there, project):
    def break_off():
        raise EngineFault("test")
        yield

    row = order()
    project()
    edit(row, "paid", 5)
    project.worker._readers["shop.Order.status"]._reconcile = break_off()
    project()
    project.look_again()
    project()
    assert stored(row) == ("new", 1)


def test_an_instance_that_is_made_anew_under_its_id_is_shown(machines_there, project):
    row = order()
    row.status.fire("pay", {"amount": 0})
    machines_there.delete("order", str(row.pk), reason="test")
    machines_there.create("order", str(row.pk))
    project()
    assert stored(row) == ("new", 1)


def test_an_instance_that_is_gone_leaves_the_column_as_it_is(machines_there, project):
    row = order()
    row.status.fire("cancel")
    machines_there.delete("order", str(row.pk), reason="test")
    project()
    report = Reconcile(machines_there, row.status.field).run()
    assert (stored(row), report.counts["gone"], report.left) == (("cancelled", 2), 1, 0)


def test_instances_whose_ids_no_row_can_have_hold_up_nothing(machines_there, project):
    row = order()
    for id in ("9" * 30, "-1", "01", "a name", "1.0"):
        machines_there.create("order", id)
    machines_there.fire("order", str(row.pk), "cancel")
    project()
    assert stored(row) == ("cancelled", 2)


def test_nothing_is_logged_for_machines_without_a_field(engine, project):
    engine.publish(machines.PARCEL | {"id": "other"})
    engine.create("other", "a")
    assert engine.client.exists(Partition(engine.emitted_logs().root(("other", 0))).log) == 0


# The command


def reconcile(*words: str) -> str:
    out = io.StringIO()
    call_command("machine", "reconcile", "order", *words, stdout=out)
    return out.getvalue()


def differ(machines_there) -> list:
    """Rows of each kind of difference."""
    from .shop.models import Order

    behind, ahead, edited, equal = (order() for _ in range(4))
    (missing,) = Order.objects.bulk_create([Order(total=1)])
    machines_there.fire("order", str(behind.pk), "cancel")
    edit(ahead, "paid", 9)
    edit(edited, "paid", 1)
    machines_there.create("order", "nobody")
    return [behind, ahead, edited, missing, equal]


def test_a_dry_run_reports_and_changes_nothing(machines_there):
    rows = differ(machines_there)
    out = io.StringIO()
    with pytest.raises(CommandError, match="4 differences"):
        call_command("machine", "reconcile", "order", "--dry-run", stdout=out)
    text = out.getvalue()
    for kind in ("behind", "ahead", "edited", "missing", "without a row"):
        assert f"1  {kind}: " in text
    assert f"{rows[2].pk}: the row says paid, revision 1; the engine: new, revision 1" in text
    assert stored(rows[1]) == ("paid", 9)


def test_the_command_mends_what_differs(machines_there):
    rows = differ(machines_there)
    text = reconcile()
    assert "4 of 4 differences mended" in text
    assert [stored(row) for row in rows] == [("cancelled", 2), ("new", 1), ("new", 1), ("new", 1), ("new", 1)]
    assert "0 of 0 differences mended" in reconcile()


def test_the_command_names_the_machines_that_are_bound(machines_there):
    with pytest.raises(CommandError, match="bound machines: bill, order, parcel"):
        call_command("machine", "reconcile", "nothing")


def test_a_list_of_rows_asks_redis_for_no_events(machines_there, django_assert_max_num_queries):
    rows = [order() for _ in range(5)]
    rows[0].status.fire("pay", {"amount": 0})
    with django_assert_max_num_queries(3):
        found = available_events([row.status for row in rows])
    assert [[event.name for event in events] for events in found[:2]] == [
        ["ship", "refund"],
        ["pay", "cancel", "note", "waive"],
    ]
