"""Publishing a definition that sends to another machine, or invokes it, takes a right on that one, or its consent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from guardian.shortcuts import assign_perm

from machines.catalog import publishing
from machines.catalog.errors import NotAccepted
from machines.catalog.versions import publication as definitions
from machines.engine import Engine
from machines.models import AuditEntry, Machine
from machines.people.actor import Actor
from machines.people.errors import Forbidden
from machines.people.permissions import RIGHTS
from tests.engine.builders import machine
from tests.engine.messages.mailing import teller

from .senders import closed, inviter


@pytest.fixture
def publisher(prefix: str, db: None):
    """Somebody who may see and publish ``inviter`` and ``teller``, and what else is named."""

    def made(*more: tuple[str, str], name: str = "mallory") -> Any:
        user = get_user_model().objects.create_user(name, is_staff=True)
        for machine_name, right in [*((n, r) for n in ("inviter", "teller") for r in ("view", "publish")), *more]:
            assign_perm(RIGHTS[right], user, Machine.objects.get(name=machine_name))
        return get_user_model().objects.get(pk=user.pk)

    return made


@pytest.fixture
def shop(engine: Engine, db: None) -> Engine:
    """A noter that says nothing, and two machines that do not reach it yet."""
    publishing.publish(closed())
    for name in ("inviter", "teller"):
        publishing.publish(machine(name, {"A": {}}))
    return engine


REACHING = [inviter("machine:noter"), inviter({"expr": "'noter' if which else 'x'"}), teller()]


def attempt(user: Any, definition: dict[str, Any]) -> str:
    try:
        definitions.publish(Actor(user, "page 10.0.0.7"), definition, reason="r")
    except Forbidden as error:
        return error.message
    return ""


@pytest.mark.parametrize("definition", REACHING)
def test_who_may_publish_one_machine_reaches_no_other_by_it(shop, publisher, definition):
    user = publisher()
    with pytest.raises(NotAccepted) as caught:
        definitions.publish(Actor(user, "page 10.0.0.7"), definition, reason="r")
    error = caught.value
    assert (error.code, error.machine, error.sender) == ("SB434", "noter", definition["id"])
    assert f'"accepts": {{"from": ["{definition["id"]}"]}} in the definition of \'noter\'' in error.message
    assert error.path.startswith("states.")
    assert error.path in error.message
    assert shop.machines()[definition["id"]] == 1, "nothing was written"
    entry = AuditEntry.objects.get(action="publish", machine=definition["id"])
    assert (entry.outcome, entry.actor) == ("refused", "mallory")


@pytest.mark.parametrize("right", ["fire", "publish"])
@pytest.mark.parametrize("definition", REACHING[::2])
def test_a_right_there_is_enough_to_publish(shop, publisher, definition, right):
    user = publisher(("noter", "view"), ("noter", right))
    assert attempt(user, definition) == ""


def test_to_see_it_is_not_enough(shop, publisher):
    assert attempt(publisher(("noter", "view")), teller())


@pytest.mark.parametrize("definition", REACHING[::2])
def test_a_machine_that_accepts_the_sender_asks_nothing_more(shop, publisher, definition):
    publishing.publish(closed(senders=[definition["id"]]))
    assert attempt(publisher(), definition) == ""


def test_a_machine_that_is_not_there_is_as_one_that_does_not_accept(shop, publisher):
    user = publisher()
    there, missing = attempt(user, inviter("machine:noter")), attempt(user, inviter("machine:nobody"))
    assert missing
    assert missing == there.replace("noter", "nobody")


def test_machines_that_are_brought_along_are_asked_for_too(shop, publisher):
    user = publisher()
    user.user_permissions.add(Permission.objects.get(codename="view_machine"))
    inside = {"spy": {key: value for key, value in teller().items() if key != "id"}}
    publishing.publish(machine("inviter.spy", {"A": {}}))
    for right in ("view", "publish"):
        assign_perm(RIGHTS[right], user, Machine.objects.get(name="inviter.spy"))
    user = get_user_model().objects.get(pk=user.pk)
    assert "'inviter.spy' sends to" in attempt(user, inviter("machine:spy", machines=inside))
    quiet = {"spy": {"initial": "A", "states": {"A": {}}}}
    assert attempt(user, inviter("machine:spy", machines=quiet)) == ""


def test_who_has_a_shell_may(shop):
    definitions.publish(Actor.console(), teller())
    assert shop.machines()["teller"] == 2


def test_the_api_refuses_it_too(shop, publisher):
    client, definition = Client(), json.dumps(inviter("machine:noter"))
    client.force_login(publisher())
    answer = client.post(
        "/api/v1/machines", json.dumps({"definition": json.loads(definition)}), content_type="application/json"
    )
    assert (answer.status_code, answer.json()["code"]) == (403, "SB434")
    assert shop.machines()["inviter"] == 1
