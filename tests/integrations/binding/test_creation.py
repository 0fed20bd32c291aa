"""An instance that is not there yet, and one that was there before its row."""

from __future__ import annotations

import pytest
from django.db import transaction

from machines.engine import UnknownEvent, UnknownInstance
from machines.fields import CreationWaits
from machines.models import OutboxEntry
from tests.conftest import NOWHERE, configure

from . import machines

pytestmark = pytest.mark.django_db(transaction=True)


def order(**fields):
    from .shop.models import Order

    return Order.objects.create(**fields)


READS = {
    "explain": lambda row: row.status.explain("cancel"),
    "instance": lambda row: row.status.instance,
    "history": lambda row: row.status.history(),
    "refresh": lambda row: row.status.refresh(),
}


@pytest.mark.parametrize("name", READS)
def test_a_row_of_this_transaction_says_that_its_instance_waits(machines_there, name):
    with transaction.atomic():
        row = order()
        with pytest.raises(CreationWaits, match="waits for the commit of the transaction"):
            READS[name](row)
        assert row.status.available() == []
    assert READS[name](row)
    assert "cancel" in [event.name for event in row.status.available()]


@pytest.mark.parametrize("name", READS)
def test_a_row_of_bulk_create_gets_its_instance_when_it_is_asked_for(machines_there, name):
    from .shop.models import Order

    (row,) = Order.objects.bulk_create([Order(total=3)])
    assert READS[name](row)
    assert machines_there.get("order", str(row.pk)).data["total"] == 3


def test_an_instance_that_is_gone_is_unknown_also_in_a_transaction(machines_there):
    row = order()
    machines_there.delete("order", str(row.pk), reason="test")
    with transaction.atomic(), pytest.raises(UnknownInstance) as raised:
        row.status.history()
    assert not isinstance(raised.value, CreationWaits)


def test_a_new_row_with_the_instance_of_an_old_one_is_loud(machines_there, caplog):
    old = order()
    id = old.pk
    old.status.fire("pay", {"amount": 0})
    old.delete()
    row = order(pk=id)
    entry = OutboxEntry.objects.filter(kind="create").latest("pk")
    assert (entry.state, entry.outcome, row.status) == ("failed", "exists", "paid")
    assert f"machine 'order' had an instance '{id}' before: paid, revision 2" in entry.message
    assert "delete the instance" in caplog.text


def test_an_instance_that_has_not_moved_is_taken_quietly(machines_there):
    machines_there.create("order", "7")
    assert order(pk=7).status == "new"
    entry = OutboxEntry.objects.get()
    assert (entry.state, entry.outcome) == ("done", "exists")


def test_an_event_that_no_version_knows_is_refused_in_the_transaction(machines_there):
    row = order()
    with transaction.atomic():
        with pytest.raises(UnknownEvent, match="no event 'pya'; its events: .*pay"):
            row.status.fire("pya")
        row.status.fire("cancel")
    assert row.status == "cancelled"


def test_an_event_of_an_earlier_version_is_taken_in_a_transaction(machines_there):
    row = order()
    states = machines.ORDER["states"]
    without = {**states["new"], "on": {k: v for k, v in states["new"]["on"].items() if k != "waive"}}
    machines_there.publish(machines.ORDER | {"states": states | {"new": without}})
    with transaction.atomic():
        row.status.fire("waive")
    assert row.status == "paid"


def test_without_redis_or_a_machine_no_event_is_refused_in_a_transaction(engine, settings):
    row = order()
    with transaction.atomic():
        assert row.status.fire("nothing-1").waits
    configure(settings, REDIS_URL=NOWHERE)
    with transaction.atomic():
        assert row.status.fire("nothing-2").waits
