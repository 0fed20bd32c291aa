"""What is not there leads to no list of what is: names of machines are told to who sees them alone."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm

from machines.catalog.publishing import adopt
from machines.models import Machine
from machines.people import tokens
from machines.people.permissions import RIGHTS
from tests.engine.builders import door, publish

OWN, LOST, OTHERS = "mine-alone", "lost-here", ("payroll-secret", "acquisition-x")


@pytest.fixture
def machines(engine, db) -> None:
    """Two of others, one that is seen, and one whose row in SQL is all that is left."""
    for name in (OWN, *OTHERS):
        publish(engine, door() | {"id": name})
        adopt(name)
    Machine.objects.create(name=LOST, current=1)


@pytest.fixture
def scoped(machines, user_of):
    """Somebody with every right on two machines, one of which is gone from Redis."""
    user = user_of("nobody", "scoped")
    for name in (OWN, LOST):
        for right in set(RIGHTS) - {"audit"}:
            assign_perm(RIGHTS[right], user, Machine.objects.get(name=name))
    user.is_staff = True
    user.save()
    return user


@pytest.fixture
def client(scoped, prefix) -> Client:
    client = Client()
    client.force_login(scoped)
    return client


def addresses() -> list[str]:
    of_machine = ("machine", "rows", "diagram", "bulk-new", "machine-charts", "completion")
    pages = [reverse(f"signalbox:{name}", args=[LOST]) for name in of_machine]
    pages += [
        reverse(f"signalbox:{name}", args=[LOST, "x"]) for name in ("instance", "queue", "force", "edit", "delete")
    ]
    pages += [reverse("signalbox:job", args=[LOST, "0-1"]), f"{reverse('signalbox:api-live')}?topic=machine:{LOST}"]
    pages += [f"{reverse('admin:machines_machine_instance', args=[Machine.objects.get(name=LOST).pk])}?id=x"]
    paths = ("", "/instances", "/counts", "/instances/x", "/instances/x/history", "/queues", "/versions", "/live")
    return [*pages, *(f"/api/v1/machines/{LOST}{path}" for path in paths)]


@pytest.mark.matrix
def test_a_machine_that_is_gone_names_those_alone_that_are_seen(client):
    told = {}
    for address in addresses():
        answer = client.get(address)
        assert answer.status_code < 500, address
        text = answer.content.decode()
        told[address] = [name for name in OTHERS if name in text]
    assert {address: names for address, names in told.items() if names} == {}
    page = client.get(reverse("signalbox:machine", args=[LOST]))
    assert (page.status_code, OWN in page.content.decode()) == (404, True)


def test_so_it_is_for_what_is_sent(client):
    for path, body in ((f"{LOST}/instances", {"id": "a"}), (f"{LOST}/events", {"calls": [{"id": "a", "event": "e"}]}),
                       (f"{LOST}/instances/a/events", {"event": "e"}),
                       (f"{LOST}/bulks", {"action": "suspend", "reason": "a"})):  # fmt: skip
        answer = client.post(f"/api/v1/machines/{path}", json.dumps(body), content_type="application/json")
        assert not any(name in answer.content.decode() for name in OTHERS), path
    for name in ("create", "bulk-new"):
        answer = client.post(reverse(f"signalbox:{name}", args=[LOST]), {"reason": "a", "do": "suspend"})
        assert not any(other in answer.content.decode() for other in OTHERS), name


def test_the_api_names_those_the_token_reaches(client, scoped, user_of):
    (problem,) = [client.get(f"/api/v1/machines/{LOST}/instances").json()]
    assert (problem["status"], problem["code"], problem["known"]) == (404, "SB420", [OWN])
    _, token = tokens.make(scoped, "narrow", tuple(RIGHTS), machines=(LOST,))
    narrow = Client().get(f"/api/v1/machines/{LOST}/instances", headers={"Authorization": f"Bearer {token}"}).json()
    assert narrow["known"] == []
    boss = Client()
    boss.force_login(user_of("supervisor", "boss"))
    assert boss.get(f"/api/v1/machines/{LOST}/instances").json()["known"] == sorted([OWN, *OTHERS])
