"""Instances carry columns of their row: shown, searched by, and compared."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from machines.integrations.attached import NotAttachable, attach
from machines.integrations.attached.reconcile import DATA, Reconcile

COLUMNS = ["number", "amount", "due", "gift", "buyer"]
DUE = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))


@pytest.fixture
def baskets(mirrored):
    from .store.models import Basket

    return attach(Basket, "state", columns=COLUMNS)


def ids(engine, baskets, **terms) -> list[str]:
    return [one.id for one in engine.find(baskets.machine, **terms)]


def test_instances_are_found_by_columns_of_their_rows(engine, baskets, admin_user):
    from .store.models import Basket

    one = Basket.objects.create(number="B-1", amount=Decimal("1234567.89"), due=DUE, gift=True, buyer=admin_user)
    Basket.objects.create(number="C-2", amount=20)
    assert engine.get(baskets.machine, str(one.pk)).data == {
        "number": "B-1", "amount": 1234567.89, "due": "2026-03-01T11:00:00.000Z", "gift": True, "buyer": admin_user.pk,
    }  # fmt: skip
    assert [step.event for step in engine.history(baskets.machine, str(one.pk))] == ["(create)"]
    assert ids(engine, baskets, where={"number": {"prefix": "B-"}, "amount": {"ge": 1000}}) == [str(one.pk)]
    assert ids(engine, baskets, where={"buyer": admin_user.pk}) == [str(one.pk)]


def test_a_save_that_writes_a_column_changes_the_instance_and_another_one_does_not(engine, baskets):
    from .store.models import Basket

    row = Basket.objects.create(number="B-1", amount=20)
    id = str(row.pk)
    row.number, row.amount = "B-2", 30
    row.save(update_fields=["facts"])
    assert engine.get(baskets.machine, id).revision == 1
    row.save(update_fields=["number"])
    assert engine.get(baskets.machine, id).data == {"number": "B-2", "amount": 20, "gift": False}
    row.pay()
    row.due = DUE
    row.save()
    live = engine.get(baskets.machine, id)
    assert (live.state, live.data["amount"], live.data["due"]) == ("paid", 0, "2026-03-01T11:00:00.000Z")
    row.due = None
    row.save()
    assert "due" not in engine.get(baskets.machine, id).data
    steps = [(step.event, step.reason) for step in engine.history(baskets.machine, id)]
    assert steps[1:3] == [("(edit)", "pay"), ("pay", "")]


def test_reconcile_finds_columns_that_no_signal_told_of(engine, baskets):
    from .store.models import Basket

    Basket.objects.bulk_create([Basket(number=f"B-{number}") for number in range(3)])
    assert Reconcile(engine, baskets).run().left == 0
    Basket.objects.filter(number="B-1").update(amount=Decimal("0.1"))
    report = Reconcile(engine, baskets).run()
    assert (report.counts[DATA], report.left) == (1, 0)
    assert report.examples[DATA][0].endswith(": amount")
    assert Reconcile(engine, baskets).run().differences == 0


def test_instances_from_before_get_the_columns_by_reconcile(engine, mirrored, caplog):
    from machines.integrations.attached import detach

    from .store.models import Basket

    before = attach(Basket, "state")
    row = Basket.objects.create(number="B-1")
    detach(before)
    after = attach(Basket, "state", columns=["number"])
    row.pay()
    row.save()
    assert (engine.get(after.machine, str(row.pk)).state, "is not mirrored" in caplog.text) == ("paid", True)
    assert Reconcile(engine, after).run().left == 0
    assert engine.get(after.machine, str(row.pk)).data == {"number": "B-1"}


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("number", r"columns=\['number'\]"),
        (["size"], "no column 'size'; it has: id, state, number"),
        (["facts"], "Basket.facts: a JSONField cannot be searched by"),
        (["number"] * 2, "8 different names at most"),
    ],
)
def test_columns_that_cannot_be_carried_are_refused(mirrored, columns, said):
    from .store.models import Basket

    with pytest.raises(NotAttachable, match=said):
        attach(Basket, "state", columns=columns)


def test_a_value_that_the_engine_cannot_hold_is_told_and_the_state_is_mirrored(engine, mirrored, caplog):
    from .store.models import Basket

    attachment = attach(Basket, "state", columns=["serial"])
    row = Basket.objects.create(number="B-1")
    row.serial = 2**60
    row.pay()
    row.save()
    assert engine.get(attachment.machine, str(row.pk)).state == "paid"
    assert "serial" in caplog.text
    assert Reconcile(engine, attachment).run().left == 1
