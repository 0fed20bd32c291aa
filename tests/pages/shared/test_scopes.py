"""Rights on single machines: what they open, and what they leave shut, whether it is there or not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm

from machines.catalog.publishing import adopt
from machines.models import AuditEntry
from machines.people.permissions import RIGHTS, allows, scope_of
from tests.pages.table import SOME, TABLE

LISTS = {name for name, entry in TABLE.items() if entry.of == SOME and not entry.arguments}


@pytest.fixture
def holding(db, prefix) -> Callable[..., Client]:
    """A client of somebody who holds every right on some machines, one by one, and none on the others."""

    def made(*names: str) -> Client:
        user = get_user_model().objects.create_user("-".join(["holder", *names]), password="let me in")
        user.user_permissions.set(Permission.objects.filter(codename="view_auditentry"))
        for name in names:
            for right in set(RIGHTS) - {"audit"}:
                assign_perm(RIGHTS[right], user, adopt(name))
        client = Client()
        client.force_login(user)
        return client

    return made


def test_what_lists_many_machines_shows_those_in_scope_alone(filled, holding):
    AuditEntry.objects.create(actor="ann", action="fire", machine="activation", outcome="done")
    AuditEntry.objects.create(actor="ann", action="worker.stop", target="elsewhere-1", outcome="done")
    AuditEntry.objects.create(actor="ann", action="fire", machine="payment", outcome="done")
    client = holding("payment")
    for name in sorted(LISTS):
        for query in [f"?topic={topic}" for topic in ("overview", "queues", "workers")] if name == "api-live" else [""]:
            answer = client.get(reverse(f"signalbox:{name}") + query)
            assert answer.status_code == 200, name
            shown = b"".join(answer.streaming_content if answer.streaming else [answer.content]).decode()
            assert not [word for word in ("activation", "new_device", "ATV-123", "elsewhere-1") if word in shown], name
    for name in ("overview", "audit", "audit-export", "metrics"):
        answer = client.get(reverse(f"signalbox:{name}"))
        shown = b"".join(answer.streaming_content if answer.streaming else [answer.content])
        assert b"payment" in shown, name


def test_an_instance_leads_to_no_kin_of_machines_out_of_scope(engine, filled, holding, as_, order):
    (child,) = engine.find("payment")
    address = reverse("signalbox:instance", kwargs={"machine": "payment", "id": child.id})
    kin = reverse("signalbox:instance", kwargs={"machine": "delivery", "id": order.id})
    assert kin in as_("viewer").get(address).content.decode()
    assert kin not in holding("payment").get(address).content.decode()


def test_rights_of_a_group_on_a_machine_are_those_of_its_people(filled, holding, as_):
    client = as_("nobody", name="grouped")
    group = Group.objects.create(name="tellers")
    for right in ("view", "fire"):
        assign_perm(RIGHTS[right], group, adopt("payment"))
    assert client.get(reverse("signalbox:machine", args=["payment"])).status_code == 403
    get_user_model().objects.get(username="grouped").groups.add(group)
    assert client.get(reverse("signalbox:machine", args=["payment"])).status_code == 200
    assert client.get(reverse("signalbox:machine", args=["activation"])).status_code == 403
    assert client.get(reverse("signalbox:bulk-new", args=["payment"])).status_code == 403


def test_a_right_on_a_machine_without_view_on_it_is_no_right(filled, user_of):
    user = user_of("nobody")
    assign_perm(RIGHTS["fire"], user, adopt("payment"))
    assert not allows(user, "fire", "payment")
    assert not scope_of(user, "fire")


def test_whatever_is_asked_of_one_user_costs_one_look_at_the_grants(filled, user_of, django_assert_num_queries):
    user = user_of("nobody")
    assign_perm(RIGHTS["view"], user, adopt("payment"))
    user = get_user_model().objects.get(pk=user.pk)
    with django_assert_num_queries(3):  # what the user holds, what the groups hold, both on machines
        for right in RIGHTS:
            for machine in ("", "payment", "activation"):
                allows(user, right, machine)
        assert scope_of(user).names == {"payment"}
