"""``fire(check=True)`` in a transaction: what would be refused is raised at the call, and the step stays on commit."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import transaction

from machines.engine import BadPayload, Conflict, EngineUnavailable, NotAllowed, Refused, Suspended, UnknownEvent
from machines.integrations.binding import outbox
from machines.models import OutboxEntry
from tests.conftest import NOWHERE, configure

pytestmark = pytest.mark.django_db(transaction=True)


def make(name: str, **fields):
    from .shop import models

    return getattr(models, name).objects.create(**fields)


@pytest.fixture
def bill(machines_there):
    return make("Bill", total=20)


@pytest.fixture
def order(machines_there):
    return make("Order", total=20)


def list_events() -> list[str]:
    return list(OutboxEntry.objects.filter(kind="fire").values_list("event", flat=True))


def test_a_refusal_is_raised_at_the_call_and_the_rest_of_the_transaction_goes_on(order):
    with transaction.atomic():
        with pytest.raises(Refused, match=r"event.amount >= total is false: event.amount = 1, total = 20"):
            order.status.fire("pay", {"amount": 1}, check=True)
        order.status.fire("pay", {"amount": 20}, check=True)
        assert order.status.instance.state == "new"
    assert (order.status, list_events()) == ("paid", ["pay"])


def test_the_row_of_this_transaction_is_what_is_checked(bill):
    with transaction.atomic():
        bill.total = 50
        bill.save()
        with pytest.raises(Refused):
            bill.state.fire("pay", {"amount": 20}, check=True)
        type(bill).objects.update(total=5)
        bill.state.fire("pay", {"amount": 5}, check=True)
    assert bill.state == "paid"


def test_what_waits_before_it_is_taken_first(order):
    with transaction.atomic():
        order.status.fire("pay", {"amount": 20})
        with pytest.raises(Refused):
            order.status.fire("cancel", check=True)
        order.status.fire("ship", check=True)
    assert (order.status, list_events()) == ("packing, printing", ["pay", "ship"])


def test_a_row_of_this_transaction_is_checked_before_it_has_an_instance(machines_there):
    with transaction.atomic():
        row, other = make("Bill", total=30), make("Order", total=30)
        for one in (row.state, other.status):
            with pytest.raises(Refused):
                one.fire("pay", {"amount": 29}, check=True)
            one.fire("pay", {"amount": 30}, check=True)
    assert (row.state, other.status) == ("paid", "paid")


def test_a_field_that_the_version_does_not_declare_leaves_the_others_in_the_check(bill, monkeypatch):
    monkeypatch.setattr(bill._meta.get_field("state"), "follows", {"total": "total", "extra": "note"})
    with transaction.atomic():
        type(bill).objects.update(total=50, note="x")
        with pytest.raises(Refused, match="total = 50"):
            bill.state.fire("pay", {"amount": 20}, check=True)


def test_a_value_of_the_row_that_does_not_fit_is_raised_by_the_check(bill, monkeypatch):
    monkeypatch.setattr(bill._meta.get_field("state"), "follows", {"total": "note"})
    with transaction.atomic():
        type(bill).objects.update(note="much")
        with pytest.raises(BadPayload, match="total"):
            bill.state.fire("pay", {"amount": 20}, check=True)
    assert list_events() == []


def test_an_object_that_is_older_than_its_instance_is_checked_on_the_instance(machines_there):
    from .shop.models import Bill

    (row,) = Bill.objects.bulk_create([Bill(total=30)])
    outbox.create_missing(Bill._meta.get_field("state"), "default")
    machines_there.fire("bill", str(row.pk), "ask")
    with transaction.atomic(), pytest.raises(Refused):
        row.state.fire("ask", check=True)


def test_the_expected_revision_is_checked_behind_a_change_of_the_row(bill):
    with transaction.atomic():
        bill.total = 50
        bill.save()
        with pytest.raises(Conflict):
            bill.state.fire("pay", {"amount": 50}, expect=7, check=True)
        bill.state.fire("pay", {"amount": 50}, expect=1, check=True)
    assert bill.state == "paid"


def test_a_row_of_bulk_create_is_checked_before_it_has_an_instance(machines_there):
    from .shop.models import Bill

    (row,) = Bill.objects.bulk_create([Bill(total=30)])
    with transaction.atomic():
        with pytest.raises(Refused):
            row.state.fire("pay", {"amount": 29}, check=True)
        row.state.fire("pay", {"amount": 30}, check=True)
    assert row.state == "paid"


def test_other_reasons_are_raised_too(order, machines_there):
    with transaction.atomic():
        with pytest.raises(UnknownEvent):
            order.status.fire("pya", check=True)
        with pytest.raises(BadPayload):
            order.status.fire("pay", {"amount": "much"}, check=True)
        with pytest.raises(Conflict):
            order.status.fire("cancel", expect=7, check=True)
        machines_there.suspend("order", str(order.pk), actor="test", reason="test")
        with pytest.raises(Suspended):
            order.status.fire("cancel", check=True)
    assert list_events() == []


def test_a_person_needs_their_group(order):
    clerk = User.objects.create_user("clerk")
    clerk.user_permissions.add(*Permission.objects.filter(codename__in=["fire_machine", "view_machine"]))
    clerk = User.objects.get(pk=clerk.pk)
    with transaction.atomic(), pytest.raises(NotAllowed, match="only for members of managers"):
        order.status.fire("waive", user=clerk, check=True)
    clerk.groups.add(Group.objects.create(name="managers"))
    with transaction.atomic():
        order.status.fire("waive", user=clerk, check=True)
    assert order.status == "paid"


def test_without_redis_nothing_can_be_checked(order, settings):
    configure(settings, REDIS_URL=NOWHERE)
    with transaction.atomic(), pytest.raises(EngineUnavailable):
        order.status.fire("cancel", check=True)
    assert list_events() == []


def test_what_changes_after_the_check_decides(bill):
    with transaction.atomic():
        pending = bill.state.fire("pay", {"amount": 20}, check=True)
        bill.total = 50
        bill.save()
    pending.refresh_from_db()
    assert (pending.outcome, bill.state) == ("SB430", "open")


def test_outside_of_a_transaction_the_event_is_the_check(bill):
    with pytest.raises(Refused):
        bill.state.fire("pay", {"amount": 1}, check=True)
    assert bill.state.fire("pay", {"amount": 20}, check=True).state == "paid"
