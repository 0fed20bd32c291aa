"""The admin's screens of instances that stand in several states, wait for timers, run children, and are held."""

from __future__ import annotations

import re

import pytest
from django.http import HttpResponse

from machines.catalog.admin import instance_url, instances_url
from machines.catalog.publishing import publish
from machines.engine import Engine
from machines.models import Machine
from tests.catalog.samples import example

ID = "R-1"


@pytest.fixture
def delivery(engine: Engine, db: None) -> Machine:
    """With R-1, which is on its way."""
    publish(example("payment"))
    machine = publish(example("delivery")).machine
    engine.create("delivery", ID, {"article": "lamp", "amount": 20})
    for name, queue, result in (
        ("payment", "bank", {"approved": True, "receipt": "B-1"}),
        ("delivery", "warehouse", {"found": True}),
    ):
        (job,) = engine.take(name, queue, "a-worker")
        engine.complete(job, result)
    engine.fire("delivery", ID, "collect")
    return machine


def text(answer) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def test_states_are_counted_with_their_sums_and_the_total_is_of_instances(admin_client, delivery: Machine) -> None:
    page = text(admin_client.get(instances_url(delivery)))
    for shown in ("all 1", "Fulfilling 1", "Parcel 1", "On its way 1", "Open 1", "Told 1", "Packed 0"):
        assert shown in page
    assert "as it was" not in page
    assert "On its way, Open, Told" in page


def test_the_list_of_a_state_holds_what_stands_in_it(admin_client, delivery: Machine, engine: Engine) -> None:
    engine.create("delivery", "R-2")
    assert ID in text(admin_client.get(instances_url(delivery, state="Invoice")))
    assert "R-2" not in text(admin_client.get(instances_url(delivery, state="Invoice")))


def test_all_active_states_are_lit_and_their_events_can_be_fired(admin_client, delivery: Machine) -> None:
    page = admin_client.get(instance_url(delivery, ID)).content.decode()
    lit = re.findall(r'class="[^"]* current" data-state="([^"]*)"', page)
    assert sorted(lit) == ["Customer", "Fulfilling", "Invoice", "On its way", "Open", "Parcel", "Told"]
    actions = re.findall(r'value="Fire ([^"]*)"', page.split("<details")[0])
    assert sorted(actions) == ["bill", "cancel", "deliver", "hold"]


def test_timers_stand_in_the_facts(admin_client, delivery: Machine) -> None:
    assert "timer after 45 s in On its way" in text(admin_client.get(instance_url(delivery, ID)))


def test_a_child_and_its_parent_lead_to_each_other(admin_client, delivery: Machine, engine: Engine) -> None:
    child = engine.create("delivery", "R-2").children["payment"]["id"]
    own, address = instance_url(delivery, "R-2"), instance_url(Machine.objects.get(name="payment"), child)
    assert f'child payment</th><td><a href="{address}">' in tight(admin_client.get(own))
    assert f'parent</th><td><a href="{own}">' in tight(admin_client.get(address))


def tight(response: HttpResponse) -> str:
    """Return the page without the spaces between its tags."""
    return re.sub(r">\s+<", "><", response.content.decode())


def test_a_suspended_instance_offers_nothing_to_fire_and_a_late_try_is_told(staff, delivery: Machine, engine) -> None:
    client = staff("view", "fire")
    held = engine.suspend("delivery", ID, actor="sue", reason="a test")
    page = text(client.get(instance_url(delivery, ID)))
    assert "The instance is suspended: no events can be fired." in page
    assert "paused" in page
    answer = client.post(instance_url(delivery, ID), {"event": "deliver", "expect": held.revision})
    assert answer.status_code == 409
    assert "SB432" in text(answer)
    assert engine.get("delivery", ID).revision == held.revision
    assert "(suspended)" in text(client.get(instances_url(delivery)))
