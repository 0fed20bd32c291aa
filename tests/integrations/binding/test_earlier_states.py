"""A column that another library filled is taken over: the engine decides from the state on that each row has."""

from __future__ import annotations

import pytest
from django.db import connection

from machines.engine import BadInput
from machines.integrations.binding.reconcile import Reconcile

pytestmark = pytest.mark.django_db(transaction=True)


def insert(state: str):
    """A row as the table has it after a migration from another field: a state, and no revision."""
    from .shop.models import Order

    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO shop_order (number, total, status, status_revision) VALUES ('x', 20, %s, 0)", [state]
        )
    return Order.objects.latest("pk")


def test_reconcile_creates_instances_in_the_states_of_their_rows(machines_there):
    rows = [insert(state) for state in ("new", "paid", "cancelled")]
    report = Reconcile(machines_there, rows[0].status.field).run()
    assert (report.mended, report.left, report.errors) == (3, 0, [])
    for row, state in zip(rows, ("new", "paid", "cancelled"), strict=True):
        row.refresh_from_db()
        live = machines_there.get("order", str(row.pk))
        assert (row.status, row.status_revision) == (state, live.revision)
        assert (live.state, live.data["total"]) == (state, 20)
    step = machines_there.history("order", str(rows[1].pk))[0]
    assert (step.event, step.reason) == ("(force)", "the row was in this state before")
    assert Reconcile(machines_there, rows[0].status.field).run().differences == 0


def test_an_event_of_a_row_that_nobody_took_over_goes_on_from_its_state(machines_there):
    row = insert("paid")
    row.status.fire("ship")
    row.refresh_from_db()
    assert row.status == "packing, printing"


def test_a_state_that_the_machine_does_not_have_is_kept_and_named(machines_there):
    row = insert("lost")
    report = Reconcile(machines_there, row.status.field).run()
    assert report.left == 1
    assert "the row is in 'lost', which order does not have" in report.errors[0]
    with pytest.raises(BadInput, match="'lost'"):
        row.status.fire("ship")
    row.refresh_from_db()
    assert (row.status, row.status_revision) == ("lost", 0)
    assert machines_there.find("order").instances == []
