"""Rights on single machines: what they open, and what they leave shut, whether it is there or not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm

from dashboard.access import RIGHTS, allows, scope_of
from machines.models import AuditEntry
from machines.publishing import adopt

from .table import TABLE, Entry

LISTS = {
    "overview", "charts", "queues", "workers", "audit", "audit-export", "components", "search", "metrics", "api-live",
    "api-docs", "approvals",
}  # fmt: skip
"""Open to who sees one machine, and about the machines they see alone."""

OF_ALL = {"sm", "sm-key", "sm-mutate", "sm-force", "direct", *(name for name in TABLE if name.startswith("webhook"))}
"""Of no machine: only for those who hold the right on every one."""

PERSONAL = {name for name in TABLE if name.startswith(("view-", "account", "token", "link", "note", "patterns"))}
"""Somebody's own, or everybody's, and of no machine: whatever machines they see."""


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


def _is_of_machine(name: str, entry: Entry) -> bool:
    return bool(entry.arguments) and name not in OF_ALL | PERSONAL


def test_every_address_is_of_a_machine_or_of_many_or_of_all():
    """A new one has to say what somebody gets there who sees one machine only."""
    rest = {name for name, entry in TABLE.items() if entry.right and not _is_of_machine(name, entry)}
    assert rest == LISTS | OF_ALL | {name for name in PERSONAL if TABLE[name].right}


@pytest.mark.parametrize("method", ["get", "post"])
def test_rights_on_one_machine_open_its_addresses_as_rights_on_all_do(filled, holding, method):
    client, got, expected = holding("activation", "new_device"), {}, {}
    for name, entry in TABLE.items():
        if entry.right and _is_of_machine(name, entry):
            got[name] = getattr(client, method)(entry.url(name)).status_code
            expected[name] = getattr(entry, method)
    assert got == expected


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_machine_out_of_scope_is_forbidden_whether_it_is_there_or_not(filled, holding, method):
    """Every address with something of a machine in it: of one that is there, of a thing that is not, of no machine."""
    client, got = holding("payment"), {}
    for name, entry in TABLE.items():
        if not (entry.right and _is_of_machine(name, entry)):
            continue
        asked = [entry.arguments]
        asked += [entry.arguments | {"machine": "nothing"}] if "machine" in entry.arguments else []
        other = "77" if name.startswith("approval") else "0-77"
        asked += [entry.arguments | {"id": other}] if "id" in entry.arguments else []
        for arguments in asked:
            address = reverse(name, kwargs=arguments) + entry.query
            got[address] = getattr(client, method)(address, follow=True).status_code
    for name in OF_ALL:
        address = TABLE[name].url(name)
        got[address] = getattr(client, method)(address, follow=True).status_code
    assert {address: code for address, code in got.items() if code != 403} == {}
    assert len(got) > 100


def test_what_lists_many_machines_shows_those_in_scope_alone(filled, holding):
    AuditEntry.objects.create(actor="ann", action="fire", machine="activation", outcome="done")
    AuditEntry.objects.create(actor="ann", action="worker.stop", target="elsewhere-1", outcome="done")
    AuditEntry.objects.create(actor="ann", action="fire", machine="payment", outcome="done")
    client = holding("payment")
    for name in sorted(LISTS - {"components"}):  # which names machines that are none
        for query in [f"?topic={topic}" for topic in ("overview", "queues", "workers")] if name == "api-live" else [""]:
            answer = client.get(reverse(name) + query)
            assert answer.status_code == 200, name
            shown = b"".join(answer.streaming_content if answer.streaming else [answer.content]).decode()
            assert not [word for word in ("activation", "new_device", "ATV-123", "elsewhere-1") if word in shown], name
    for name in ("overview", "audit", "audit-export", "metrics"):
        answer = client.get(reverse(name))
        shown = b"".join(answer.streaming_content if answer.streaming else [answer.content])
        assert b"payment" in shown, name


def test_an_instance_leads_to_no_kin_of_machines_out_of_scope(engine, filled, holding, as_, order):
    (child,) = engine.find("payment")
    address = reverse("instance", kwargs={"machine": "payment", "id": child.id})
    kin = reverse("instance", kwargs={"machine": "delivery", "id": order.id})
    assert kin in as_("viewer").get(address).content.decode()
    assert kin not in holding("payment").get(address).content.decode()


def test_rights_of_a_group_on_a_machine_are_those_of_its_people(filled, holding, as_):
    client = as_("nobody", name="grouped")
    group = Group.objects.create(name="tellers")
    for right in ("view", "fire"):
        assign_perm(RIGHTS[right], group, adopt("payment"))
    assert client.get(reverse("machine", args=["payment"])).status_code == 403
    get_user_model().objects.get(username="grouped").groups.add(group)
    assert client.get(reverse("machine", args=["payment"])).status_code == 200
    assert client.get(reverse("machine", args=["activation"])).status_code == 403
    assert client.get(reverse("bulk-new", args=["payment"])).status_code == 403


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
