"""The room shows a mirrored machine as any other, says that it is one, and changes only rows."""

from __future__ import annotations

import pytest
from django.urls import reverse

from machines.engine import BadInput
from machines.instances import actions as instances
from machines.instances.bulks import Order
from machines.instances.bulks import actions as bulks
from machines.integrations.attached import detach
from machines.people.actor import Actor
from machines.people.errors import Forbidden


@pytest.fixture
def purchase(mirrored):
    from .store.models import Purchase

    made = Purchase.objects.create()
    made.confirm()
    made.save()
    return made


def test_pages_say_that_rows_decide_and_offer_no_repair(admin_client, engine, mirrored, purchase):
    machine = admin_client.get(reverse("signalbox:machine", args=[mirrored.machine])).content.decode()
    assert "<b>mirrored</b>" in machine
    assert "Mirrors store.Purchase.state" in machine
    page = admin_client.get(reverse("signalbox:instance", args=[mirrored.machine, str(purchase.pk)])).content.decode()
    assert "<b>mirrored</b>" in page
    assert "Ship it" in page
    for offered in ("Repairs", "Try anyway"):
        assert offered not in page


def test_a_process_without_the_model_offers_no_event(admin_client, admin_user, engine, mirrored, purchase):
    detach(mirrored)
    page = admin_client.get(reverse("signalbox:instance", args=[mirrored.machine, str(purchase.pk)])).content.decode()
    assert "<b>mirrored</b>" in page
    assert 'name="event"' not in page
    with pytest.raises(Forbidden, match="mirrors rows"):
        instances.fire(Actor(admin_user, "page"), mirrored.machine, str(purchase.pk), "ship")


def test_nobody_repairs_or_publishes_there(admin_user, engine, mirrored, purchase):
    actor = Actor(admin_user, "page")
    with pytest.raises(BadInput, match="follows its row"):
        instances.repair(actor, "force", mirrored.machine, str(purchase.pk), state="new", reason="why not")
    with pytest.raises(BadInput, match="follow their rows"):
        bulks.start(actor, Order(mirrored.machine, "delete", actor.name, "why not"))
    assert not actor.may("publish", mirrored.machine)
    assert actor.may("view", mirrored.machine)
    assert engine.get(mirrored.machine, str(purchase.pk)).state == "confirmed"


def test_lists_offer_methods_in_place_of_repairs_and_instances_lead_to_their_row(
    admin_client, engine, mirrored, purchase, monkeypatch
):
    page = admin_client.get(reverse("signalbox:machine", args=[mirrored.machine])).content.decode()
    assert "Call a method…" in page
    for offered in ("Suspend…", "Delete…", "Create instance", "Accepts messages from"):
        assert offered not in page
    address = reverse("signalbox:instance", args=[mirrored.machine, str(purchase.pk)])
    assert "row in the admin" not in admin_client.get(address).content.decode()  # it is not registered there
    monkeypatch.setattr("machines.integrations.attached.calls.reverse", lambda name, args: f"/{name}/{args[0]}/")
    assert f'href="/admin:store_purchase_change/{purchase.pk}/"' in admin_client.get(address).content.decode()
