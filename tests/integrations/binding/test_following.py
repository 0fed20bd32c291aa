"""A guard decides on the row of today: columns that a field follows, from saves, from updates, and with each event."""

from __future__ import annotations

import threading
from decimal import Decimal

import pytest
from django.db import connection, router, transaction
from django.db.models import F
from django.utils import timezone

from machines.engine import Conflict, Refused
from machines.fields import ColumnGone, MachineField
from machines.integrations.binding import checks, delivery, following, outbox
from machines.integrations.binding.reconcile import DryRun, Reconcile
from machines.models import OutboxEntry
from tests.conftest import NOWHERE, configure

from . import machines

pytestmark = pytest.mark.django_db(transaction=True)


def bills():
    from .shop.models import Bill

    return Bill.objects


def bill(**fields):
    return bills().create(**{"total": 20, **fields})


def field() -> MachineField:
    return bills().model._meta.get_field("state")


def there(engine, row):
    return engine.get("bill", str(row.pk))


def die(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_an_instance_is_created_with_the_columns(machines_there):
    assert there(machines_there, bill(discount=Decimal("2.50"))).data == {"total": 20, "off": 2.5}
    assert there(machines_there, bill()).data == {"total": 20}


def test_a_save_that_changes_a_column_is_followed_by_a_step(machines_there):
    row = bill()
    row.total = 50
    row.save()
    assert (there(machines_there, row).data["total"], row.state.revision) == (50, 2)
    step = row.state.history(limit=1)[0]
    assert (step.event, step.actor, step.reason) == ("(edit)", "row", "shop.Bill.state follows its row")
    with pytest.raises(Refused):  # also of those who know no row
        machines_there.fire("bill", str(row.pk), "pay", {"amount": 20})
    assert [one.id for one in machines_there.find("bill", where={"total": {"ge": 50}})] == [str(row.pk)]
    assert list(machines_there.find("bill", where={"total": 20})) == []


@pytest.mark.parametrize("changes", [{"note": "new"}, {"total": 20}, {"discount": None}])
def test_a_save_that_changes_none_of_them_asks_nothing(machines_there, changes):
    row = bill()
    for name, value in changes.items():
        setattr(row, name, value)
    row.save()
    row.save(update_fields=["note"])
    assert list(OutboxEntry.objects.values_list("kind", flat=True)) == ["create"]


def test_an_expression_a_null_and_part_of_a_row_are_followed(machines_there):
    row = bill(discount=Decimal(1))
    row.total = F("total") + 5
    row.discount = None
    row.save(update_fields=["total"])
    assert there(machines_there, row).data == {"total": 25, "off": 1}
    row.refresh_from_db()
    row.discount = None
    row.save()
    assert there(machines_there, row).data == {"total": 25}


def test_a_rollback_is_not_followed_and_a_transaction_at_its_commit(machines_there):
    row = bill()
    with transaction.atomic():
        bills().get(pk=row.pk).save()
        row.total = 50
        row.save()
        pending = row.state.fire("pay", {"amount": 20})
        assert there(machines_there, row).data["total"] == 20
        transaction.set_rollback(True)
    assert not OutboxEntry.objects.filter(pk=pending.pk).exists()
    assert there(machines_there, row).data["total"] == 20
    with transaction.atomic():
        row.save()
        pending = row.state.fire("pay", {"amount": 20})
    pending.refresh_from_db()
    assert (pending.state, pending.outcome, row.state, there(machines_there, row).data["total"]) == (
        "failed", "SB430", "open", 50,
    )  # fmt: skip


def test_an_event_carries_what_an_update_changed(machines_there):
    row = bill()
    bills().update(total=50)
    with pytest.raises(Refused, match="event.amount >= total"):
        row.state.fire("pay", {"amount": 20})
    assert (row.state.revision, row.state.fire("pay", {"amount": 50}).state) == (2, "paid")


def test_an_event_in_a_transaction_carries_what_an_update_changed(machines_there):
    row = bill()
    with transaction.atomic():
        bills().update(total=50)
        pending = row.state.fire("pay", {"amount": 20})
    pending.refresh_from_db()
    assert (pending.outcome, row.state) == ("SB430", "open")


def test_the_revision_that_a_caller_expects_counts_before_the_row_is_followed(machines_there):
    row = bill()
    bills().update(total=50)
    with pytest.raises(Conflict):
        row.state.fire("pay", {"amount": 50}, expect=7)
    assert there(machines_there, row).revision == 1
    assert row.state.fire("pay", {"amount": 50}, expect=1, key="once").revision == 3
    assert row.state.fire("pay", {"amount": 50}, expect=1, key="once").revision == 3


def test_the_revision_that_a_caller_expects_passes_changes_of_the_row_and_no_other_step(machines_there):
    row, other = bill(), bill()
    for one in (row, other):
        with transaction.atomic():
            one.total = 50
            one.save()
            if one is other:
                machines_there.fire("bill", str(one.pk), "ask")
            pending = one.state.fire("pay", {"amount": 50}, expect=1)
        pending.refresh_from_db()
        assert (pending.outcome, one.state) == (("applied", "paid") if one is row else ("SB440", "asked"))


def test_an_event_of_which_only_the_change_arrived_is_sent_again(machines_there, monkeypatch, deliver):
    row = bill()
    with monkeypatch.context() as patch:
        patch.setattr(type(machines_there), "fire", die)
        sending = transaction.atomic()
        sending.__enter__()
        bills().update(total=50)
        row.state.fire("pay", {"amount": 50}, expect=1)
        with pytest.raises(KeyboardInterrupt):
            sending.__exit__(None, None, None)
    assert there(machines_there, row).data["total"] == 50
    OutboxEntry.objects.filter(state="waiting").update(due=timezone.now())
    deliver()
    assert (OutboxEntry.objects.latest("pk").outcome, there(machines_there, row).state) == ("applied", "paid")


def test_a_change_is_followed_where_another_process_creates_the_instance_first(machines_there, monkeypatch):
    (row,) = bills().bulk_create([bills().model(total=20)])
    ensure = delivery.ensure_instance

    def come_second(field, id, using):
        machines_there.create("bill", id, {"total": 20})
        return ensure(field, id, using)

    monkeypatch.setattr(delivery, "ensure_instance", come_second)
    row.total = 50
    row.save()
    assert there(machines_there, row).data["total"] == 50


def test_an_instance_that_was_there_before_its_row_gets_the_columns(machines_there):
    machines_there.create("bill", "7", {"total": 3})
    row = bill(pk=7)
    entry = OutboxEntry.objects.get()
    assert (entry.state, entry.outcome, there(machines_there, row).data["total"]) == ("done", "exists", 20)
    assert row.state.revision == 2


def test_a_change_of_an_instance_that_others_move_all_the_time_waits(machines_there, monkeypatch, deliver):
    row = bill()
    with monkeypatch.context() as patch:
        patch.setattr(following, "TURNS", 1)
        edit = type(machines_there).edit

        def move_first(engine, machine, id, changes, **options):
            machines_there.fire("bill", id, "ask")
            return edit(engine, machine, id, changes, **options)

        patch.setattr(type(machines_there), "edit", move_first)
        row.total = 50
        row.save()
    assert OutboxEntry.objects.latest("pk").state == "waiting"
    OutboxEntry.objects.filter(state="waiting").update(due=timezone.now())
    deliver()
    assert there(machines_there, row).data["total"] == 50


def test_a_column_that_the_database_makes_is_followed_with_each_save(machines_there, monkeypatch):
    row = bill()
    bills().update(total=50)
    monkeypatch.setattr(bills().model._meta.get_field("total"), "generated", True)
    row.save(update_fields=["note"])
    assert there(machines_there, row).data["total"] == 50


def test_the_row_of_the_database_that_is_written_to_decides(machines_there, monkeypatch):
    class Primary:
        def db_for_write(self, model, **hints):
            return "default"

    monkeypatch.setattr(router, "routers", [Primary()])
    row = bill()
    row._state.db = "replica"
    assert row.state.fire("pay", {"amount": 20}).state == "paid"


def test_a_change_waits_for_redis_and_the_event_behind_it_too(machines_there, settings, deliver, monkeypatch):
    row, url = bill(), settings.SIGNALBOX["REDIS_URL"]
    configure(settings, REDIS_URL=NOWHERE)
    row.total = 50
    row.save()
    with transaction.atomic():
        pending = row.state.fire("pay", {"amount": 20})
    configure(settings, REDIS_URL=url)
    monkeypatch.setattr(delivery, "_away_until", 0.0)
    OutboxEntry.objects.filter(state="waiting").update(due=timezone.now())
    deliver()
    pending.refresh_from_db()
    assert (pending.outcome, there(machines_there, row).data["total"]) == ("SB430", 50)


def test_a_row_of_bulk_create_has_todays_columns_at_its_first_event(machines_there):
    (row,) = bills().bulk_create([bills().model(total=20)])
    bills().update(total=50)
    with pytest.raises(Refused):
        row.state.fire("pay", {"amount": 20})
    assert there(machines_there, row).data["total"] == 50


def test_of_many_that_change_one_row_the_last_value_stays(machines_there):
    row = bill()

    def change(first: int) -> None:
        try:
            for total in range(first, first + 5):
                mine = bills().get(pk=row.pk)
                mine.total = total
                mine.save()
        finally:
            connection.close()

    threads = [threading.Thread(target=change, args=(first,)) for first in (100, 200, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    worker = outbox.OutboxSender()
    OutboxEntry.objects.filter(state="waiting").update(due=timezone.now())
    while worker.run_once():
        pass
    assert there(machines_there, row).data["total"] == bills().get().total


def test_what_an_update_changed_is_found_and_mended_by_reconcile(machines_there):
    row, other = bill(), bill()
    bills().filter(pk=row.pk).update(total=50)
    found = Reconcile(machines_there, field(), dry_run=True).run()
    assert isinstance(found, DryRun)
    assert (found.counts, found.left) == ({"outdated": 1, "equal": 1}, 1)
    assert found.examples["outdated"] == [f"{row.pk}: the row says open, revision 1; the engine: open, revision 1;"
                                          " outdated: total"]  # fmt: skip
    assert there(machines_there, row).data["total"] == 20
    assert Reconcile(machines_there, field()).run().left == 0
    row.refresh_from_db()
    assert (there(machines_there, row).data["total"], row.state.revision) == (50, 2)
    assert there(machines_there, other).revision == 1


def test_an_instance_that_is_deleted_meanwhile_does_not_end_the_comparison(machines_there, monkeypatch):
    row, other = bill(), bill()
    bills().update(total=50)
    list_differences = following.list_differences

    def vanish(field, instance, values):
        if instance.id == str(row.pk):
            machines_there.delete("bill", instance.id, reason="test")
        return list_differences(field, instance, values)

    monkeypatch.setattr(following, "list_differences", vanish)
    report = Reconcile(machines_there, field()).run()
    assert [error.partition(":")[0] for error in report.errors] == [str(row.pk)]
    assert there(machines_there, other).data["total"] == 50


def test_an_instance_of_a_version_without_the_field_takes_its_events(engine):
    states = {"open": {"on": {"ask": "asked"}}, "asked": {}}
    engine.publish({**machines.BILL, "context": {"paid": 0}, "index": [], "states": states})
    engine.create("bill", "1")
    machines.publish(engine)
    row = bill(pk=1)
    assert row.state.fire("ask").state == "asked"
    assert there(engine, row).data == {"paid": 0}


# A column that vanished


@pytest.fixture
def vanished(machines_there, monkeypatch):
    row = bill()
    monkeypatch.setattr(field(), "follows", {"total": "amount"})
    return row


def test_a_column_that_vanished_is_named_by_the_check(vanished):
    (found,) = checks.check_field(field())
    assert found.id == "signalbox.E038"
    assert found.msg.startswith("shop.Bill.state follows 'amount', which shop.Bill does not have: correct follows=")
    assert "it has id, total, discount, note, state" in found.msg


def test_a_column_that_vanished_stops_events_with_a_word_and_loses_none(vanished, machines_there, monkeypatch, deliver):
    with pytest.raises(ColumnGone, match="follows 'amount'"):
        vanished.state.fire("ask")
    with transaction.atomic():
        pending = vanished.state.fire("ask")
    pending.refresh_from_db()
    assert (pending.state, pending.message[:31]) == ("waiting", "shop.Bill.state follows 'amount'"[:31])
    report = Reconcile(machines_there, field()).run()
    assert (report.left, report.errors) == (0, [pending.message])
    monkeypatch.undo()
    OutboxEntry.objects.update(due=timezone.now())
    deliver()
    pending.refresh_from_db()
    assert (pending.outcome, there(machines_there, vanished).state) == ("applied", "asked")


def test_a_column_that_no_definition_declares_is_named_by_the_check(engine, monkeypatch, settings, prefix):
    monkeypatch.setattr(checks, "get_prefix", lambda: checks.conf.PREFIX)
    engine.publish({"id": "bill", "initial": "open", "context": {"total": 0}, "states": {"open": {}}})
    found = [one for one in checks.check_machines() if one.id == "signalbox.W039"]
    assert [one.msg for one in found] == [
        "shop.Bill.state follows off, which the published definition of 'bill' does not declare"
    ]


def test_follows_takes_names_or_a_mapping():
    assert MachineField("bill", follows=["total"]).follows == {"total": "total"}
    assert MachineField("bill").follows == {}
    for wrong in ("total", [1], {"total": 1}, {1: "total"}):
        with pytest.raises(TypeError, match="follows takes names of columns"):
            MachineField("bill", follows=wrong)


def test_follows_is_no_part_of_a_migration():
    assert MachineField("bill", follows=["total"]).deconstruct()[3].keys() == {"max_length", "db_index"}
