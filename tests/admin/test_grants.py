"""Rights on one machine, given on its page of the admin; and what somebody sees there who has no others."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.test import Client
from guardian.shortcuts import assign_perm

from machines.catalog.admin import instance_url, instances_url
from machines.catalog.publishing import publish
from machines.models import AuditEntry, Machine
from machines.people.permissions import rights_of
from tests.catalog.samples import example


@pytest.fixture
def payment(machine: Machine) -> Machine:
    """A second machine, beside ``machine``."""
    return publish(example("payment")).machine


def change(machine: Machine) -> str:
    return f"/admin/machines/machine/{machine.pk}/change/"


def sent(holders: dict[str, list[tuple[int, str]]]) -> dict[str, str]:
    """The forms of both tables, with one row for each right that is given."""
    form = {}
    for kind in ("user", "group"):
        rows = holders.get(kind, [])
        form |= {f"{kind}_grants-TOTAL_FORMS": str(len(rows)), f"{kind}_grants-INITIAL_FORMS": "0"}
        for number, (pk, codename) in enumerate(rows):
            form[f"{kind}_grants-{number}-{kind}"] = str(pk)
            form[f"{kind}_grants-{number}-permission"] = str(Permission.objects.get(codename=codename).pk)
    return form


def test_rights_are_given_to_people_and_groups_and_the_log_says_so(admin_client, machine, payment) -> None:
    ann, tellers = get_user_model().objects.create_user("ann"), Group.objects.create(name="tellers")
    ann.groups.add(tellers)
    given = {"user": [(ann.pk, "view_machine")], "group": [(tellers.pk, "fire_machine")]}
    assert admin_client.post(change(payment), sent(given)).status_code == 302
    ann = get_user_model().objects.get(pk=ann.pk)
    assert rights_of(ann, "payment") == {"view", "fire"}
    assert rights_of(ann, machine.name) == rights_of(ann) == frozenset()
    assert "ann" in LogEntry.objects.get(object_id=str(payment.pk)).change_message
    page = admin_client.get(change(payment)).content.decode()
    assert "Can fire events" in page
    assert "Can add user" not in page, "permissions that no machine has are not offered"


def test_whoever_may_not_change_users_gives_no_rights(staff, machine: Machine) -> None:
    client = staff("view", "fire", "operate", "publish")
    assert "user_grants" not in client.get(change(machine)).content.decode()
    assert client.post(change(machine), sent({})).status_code == 403


def test_the_admin_of_one_machine_shows_no_other(staff, machine: Machine, payment: Machine, instance: str) -> None:
    client: Client = staff()
    user = get_user_model().objects.get(username="sam")
    for right in ("view", "publish"):
        assign_perm(f"machines.{right}_machine", user, payment)
    user.user_permissions.add(Permission.objects.get(codename="view_auditentry"))
    for name in ("activation", "payment", ""):
        AuditEntry.objects.create(
            actor="ann", action="publish", machine=name, target=f"of {name or 'none'}", outcome="done"
        )
    for path, shown in (("machine", "payment"), ("machineversion", "payment"), ("auditentry", "of payment")):
        page = client.get(f"/admin/machines/{path}/").content.decode()
        assert shown in page
        assert "activation" not in page
        assert "of none" not in page
    assert client.get(instances_url(payment)).status_code == 200
    for address in (instances_url(machine), instance_url(machine, instance), "/admin/machines/machine/999/instances/"):
        assert client.get(address).status_code == 403, "there or not, it is not for them"
    assert client.get(change(payment)).status_code == 200
    assert client.get(change(machine)).status_code in (302, 404)
