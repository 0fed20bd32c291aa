"""The room shows a mirrored machine as any other, says that it is one, and changes nothing of it."""

from __future__ import annotations

import pytest
from django.urls import reverse

from machines.services import Actor, Forbidden, instances


@pytest.fixture
def purchase(mirrored):
    from .store.models import Purchase

    made = Purchase.objects.create()
    made.confirm()
    made.save()
    return made


def test_pages_say_that_rows_decide_and_offer_no_event_and_no_repair(admin_client, engine, mirrored, purchase):
    machine = admin_client.get(reverse("signalbox:machine", args=[mirrored.machine])).content.decode()
    assert "<b>mirrored</b>" in machine
    assert "Mirrors store.Purchase.state" in machine
    page = admin_client.get(reverse("signalbox:instance", args=[mirrored.machine, str(purchase.pk)])).content.decode()
    assert "<b>mirrored</b>" in page
    assert "confirm" in page
    assert "Ship it" in page
    for offered in ('name="event"', "Repairs", "Try anyway"):
        assert offered not in page


def test_nobody_fires_forces_or_publishes_there(admin_user, engine, mirrored, purchase):
    actor = Actor(admin_user, "page")
    with pytest.raises(Forbidden, match="mirrors rows"):
        instances.fire(actor, mirrored.machine, str(purchase.pk), "ship")
    with pytest.raises(Forbidden, match="mirrors rows"):
        instances.repair(actor, "force", mirrored.machine, str(purchase.pk), state="new", reason="why not")
    assert not actor.may("publish", mirrored.machine)
    assert actor.may("view", mirrored.machine)
    assert engine.get(mirrored.machine, str(purchase.pk)).state == "confirmed"
