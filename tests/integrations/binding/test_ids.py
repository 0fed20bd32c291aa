"""Ids that rows give their instances, and rows whose instances are not there."""

from __future__ import annotations

import io

import pytest
from django.core import serializers
from django.core.management import CommandError, call_command

from machines.engine import BadInput
from machines.models import OutboxEntry

pytestmark = pytest.mark.django_db(transaction=True)


def reconcile(name: str, *words: str) -> str:
    out = io.StringIO()
    try:
        call_command("machine", "reconcile", name, *words, stdout=out)
    except CommandError as error:
        out.write(f"ERROR {error}")
    return out.getvalue()


def parcel(number: str):
    from .shop.models import Parcel

    return Parcel.objects.create(number=number)


def order(**fields):
    from .shop.models import Order

    return Order.objects.create(**fields)


@pytest.mark.parametrize("value", ["", "  ", "a\x00b", None])
def test_a_value_that_can_be_no_id_is_refused_when_the_row_is_saved(machines_there, value):
    from .shop.models import Parcel

    with pytest.raises(BadInput, match=r"shop\.Parcel\.place takes the instance's id from number, which cannot be"):
        parcel(value)
    with pytest.raises(BadInput, match="cannot be"):
        Parcel.objects.bulk_create([Parcel(number=value)])
    row = parcel("P-1")
    row.number = value
    with pytest.raises(BadInput, match="cannot be"):
        row.save(update_fields=["number"])
    assert not OutboxEntry.objects.exclude(instance="P-1").exists()


def test_the_id_of_a_saved_row_stays(machines_there):
    from .shop.models import Parcel

    row = parcel("P-1")
    row.number = "P-2"
    with pytest.raises(BadInput, match="the row's instance is 'P-1', by number, which cannot become 'P-2'"):
        row.save()
    row.made = 5
    row.save(update_fields=["made"])
    Parcel.objects.get().save()
    assert Parcel.objects.values_list("number", "made").get() == ("P-1", 5)


def test_a_row_without_an_id_is_named_and_holds_up_no_other(machines_there):
    from .shop.models import Parcel

    bad, behind = parcel("P-0"), parcel("P-1")
    Parcel.objects.filter(pk=bad.pk).update(number="")
    machines_there.fire("parcel", "P-1", "move")
    told = reconcile("parcel")
    assert "1  no id: " in told
    assert f"row {bad.pk}: number is ''" in told
    assert "1 of 1 differences mended" in told
    assert "ERROR 1 differences are left" in told
    behind.refresh_from_db()
    assert behind.place == "there"
    bad.refresh_from_db()
    bad.number = "P-0"  # a value that was no id may be mended
    bad.save()
    bad.delete()


def test_rows_of_a_dump_get_instances_when_they_are_asked_for(machines_there):
    row, ended = order(total=3), order()
    row.status.fire("pay", {"amount": 3})
    ended.status.fire("cancel")
    text, id = serializers.serialize("json", [row, ended]), str(row.pk)
    for one in (row, ended):
        machines_there.delete("order", str(one.pk), reason="test")
        one.delete()
    for restored in serializers.deserialize("json", text):
        restored.save()
    told = reconcile("order")
    assert "2  gone" in told
    assert "1 rows have lost their instance though their state is not final; --create-missing" in told
    assert "1 rows have lost" in reconcile("order", "--dry-run", "--create-missing")
    assert "1 of 1 instances that were gone were created, in the initial state" in reconcile(
        "order", "--create-missing"
    )
    found = list(type(row).objects.order_by("pk").values_list("status", "status_revision"))
    assert found == [("new", 1), ("cancelled", 2)]
    assert machines_there.get("order", id).data["total"] == 3
    assert "lost" not in reconcile("order", "--create-missing")


def test_an_instance_that_was_there_is_not_created_by_reconcile(machines_there):
    from .shop.models import Order

    there, missing = Order.objects.bulk_create([Order(), Order()])
    machines_there.create("order", str(there.pk))
    machines_there.fire("order", str(there.pk), "cancel")
    assert "2 of 2 differences mended" in reconcile("order")
    assert not OutboxEntry.objects.exists()
    assert dict(Order.objects.values_list("pk", "status")) == {there.pk: "cancelled", missing.pk: "new"}
