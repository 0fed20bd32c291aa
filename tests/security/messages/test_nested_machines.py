"""Machines that a definition brings along: each is published by the same right, entry and author as any other."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.test import Client
from guardian.shortcuts import assign_perm

from machines.catalog import builtin_machines, publishing
from machines.catalog.submissions import read
from machines.catalog.versions import publication as definitions
from machines.engine import DefinitionError, Engine
from machines.engine.definitions import check
from machines.engine.limits import MAX_EMBEDDED
from machines.models import AuditEntry, Machine, MachineVersion
from machines.people import tokens
from machines.people.actor import Actor
from machines.people.errors import Forbidden
from machines.people.permissions import RIGHTS
from tests.conftest import remove

CHARGE = {"initial": "due", "states": {"due": {"on": {"pay": "paid"}}, "paid": {"type": "final"}}}
FREE = {"initial": "paid", "states": {"paid": {"type": "final"}}}
"""What an attacker would have in the place of ``CHARGE``."""
WHY = "the new checkout"


def shop(kid: dict[str, Any] = CHARGE, **more: Any) -> dict[str, Any]:
    """A machine that brings ``shop.charge`` along."""
    states = {"open": {"invoke": {"src": "machine:charge"}, "on": {"close": "shut"}}, "shut": {"type": "final"}}
    return {"id": "shop", "initial": "open", "states": states, "machines": {"charge": kid}} | more


def deep(inner: dict[str, Any] = CHARGE) -> dict[str, Any]:
    """A machine in a machine in a machine."""
    return shop(CHARGE | {"machines": {"bank": inner}})


@pytest.fixture
def publisher(prefix: str, db: None) -> Callable[..., Any]:
    """Somebody with ``view`` and ``publish`` on these machines, one by one; on all of them where none is named."""

    def made(*names: str, name: str = "mallory", wanted: tuple[str, ...] = ("view", "publish")) -> Any:
        user = get_user_model().objects.create_user(name, is_staff=True)
        for right in wanted:
            for machine in names:
                assign_perm(RIGHTS[right], user, Machine.objects.get(name=machine))
            if not names:
                codename = RIGHTS[right].partition(".")[2]
                user.user_permissions.add(Permission.objects.get(codename=codename))
        return get_user_model().objects.get(pk=user.pk)

    return made


@pytest.fixture
def shared(engine: Engine, db: None) -> Engine:
    """``shop``, and a machine of others that has the name of what it could bring along."""
    publishing.publish(shop(CHARGE) | {"machines": {}, "states": {"open": {"on": {"close": "open"}}}})
    publishing.publish(CHARGE | {"id": "shop.charge", "description": "the treasury's"})
    AuditEntry.objects.all()._raw_delete("default")
    return engine


def browser(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def by_service(user: Any, definition: dict[str, Any]) -> str:
    try:
        definitions.publish(Actor(user, "page 10.0.0.7"), definition, reason=WHY)
    except Forbidden as error:
        return error.message
    return ""


def by_api(user: Any, definition: dict[str, Any]) -> str:
    _, text = tokens.make(user, "a test", tuple(RIGHTS))
    answer = Client().post(
        "/api/v1/machines", json.dumps({"definition": definition, "reason": WHY}), content_type="application/json",
        headers={"Authorization": f"Bearer {text}"},
    )  # fmt: skip
    return "" if answer.status_code == 201 else answer.content.decode()


DOORS: dict[str, Callable[[Any, dict[str, Any]], str]] = {"service": by_service, "api": by_api}


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> Callable[[Any, dict[str, Any]], str]:
    return DOORS[request.param]


def entries() -> list[tuple[str, str, str, str]]:
    """Oldest first: who, on which machine, what came of it, which version."""
    found = AuditEntry.objects.filter(action="publish").order_by("id")
    return [(entry.actor, entry.machine, entry.outcome, entry.target) for entry in found]


def versions() -> list[tuple[str, int, str]]:
    """Of all machines: name, number and author."""
    rows = MachineVersion.objects.order_by("machine__name", "number").select_related("machine", "published_by")
    return [(row.machine.name, row.number, row.published_by.username if row.published_by else "") for row in rows]


def test_a_machine_of_others_is_not_overwritten_by_a_nested_one(shared, publisher, door):
    said = door(publisher("shop"), shop(FREE))
    assert "shop.charge" in said
    assert shared.machines() == {"shop": 1, "shop.charge": 1}
    assert shared.definition("shop.charge")["description"] == "the treasury's"
    assert versions() == [("shop", 1, ""), ("shop.charge", 1, "")]
    assert sorted(entries()) == [("mallory", "shop", "refused", ""), ("mallory", "shop.charge", "refused", "")]
    for entry in AuditEntry.objects.all():
        assert (entry.detail["code"], entry.reason) == ("SB434", WHY)


def test_creating_a_nested_machine_takes_the_right_on_all_of_them(engine, publisher, door, db):
    publishing.publish(shop() | {"machines": {}, "states": {"open": {"on": {"close": "open"}}}})
    said = door(publisher("shop"), shop())
    assert "shop.charge" in said
    assert engine.machines() == {"shop": 1}
    assert ("mallory", "shop.charge", "refused", "") in entries()


def test_it_answers_alike_whether_the_nested_name_is_taken_or_not(shared, publisher):
    user = publisher("shop")
    taken = by_service(user, shop(FREE))
    free = by_service(user, shop() | {"machines": {"chargf": FREE}, "states": shop()["states"] | {"open": {}}})
    assert taken.replace("shop.charge", "NAME") == free.replace("shop.chargf", "NAME")


def test_with_the_right_on_each_name_all_are_published_with_author_and_entry(shared, publisher, door):
    user = publisher("shop", "shop.charge")
    assert door(user, shop(FREE)) == ""
    assert shared.machines() == {"shop": 2, "shop.charge": 2}
    assert versions() == [
        ("shop", 1, ""), ("shop", 2, "mallory"), ("shop.charge", 1, ""), ("shop.charge", 2, "mallory"),
    ]  # fmt: skip
    assert sorted(entries()) == [("mallory", "shop", "done", "v2"), ("mallory", "shop.charge", "done", "v2")]
    nested = AuditEntry.objects.get(machine="shop.charge")
    assert (nested.detail["within"], nested.reason) == ("shop", WHY)
    assert {version.notes for version in MachineVersion.objects.filter(number=2)} == {WHY}


def test_the_right_on_all_machines_creates_nested_ones(engine, publisher, door):
    assert door(publisher(), deep()) == ""
    assert engine.machines() == {"shop": 1, "shop.charge": 1, "shop.charge.bank": 1}
    assert {author for *_, author in versions()} == {"mallory"}
    assert sorted(machine for _, machine, *_ in entries()) == ["shop", "shop.charge", "shop.charge.bank"]


def test_a_machine_in_a_nested_machine_is_asked_for_too_and_one_refusal_refuses_all(shared, publisher, door):
    publishing.publish(CHARGE | {"id": "shop.charge.bank"})
    said = door(publisher("shop", "shop.charge"), deep(FREE))
    assert "shop.charge.bank" in said
    assert shared.machines() == {"shop": 1, "shop.charge": 1, "shop.charge.bank": 1}
    assert [entry for entry in entries() if entry[2] == "done"] == []


def test_a_nested_machine_that_stays_as_it_is_takes_no_right_and_writes_no_version(engine, publisher, door):
    by_service(publisher(name="alice"), shop())
    user = publisher("shop", name="bob")
    assert door(user, shop(description="another word")) == ""
    assert engine.machines() == {"shop": 2, "shop.charge": 1}
    assert versions() == [("shop", 1, "alice"), ("shop", 2, "bob"), ("shop.charge", 1, "alice")]
    assert [entry for entry in entries() if entry[0] == "bob"] == [("bob", "shop", "done", "v2")]


def test_one_that_stays_is_not_taken_for_changed_when_redis_lost_it(engine, publisher, prefix):
    by_service(publisher(name="alice"), shop())
    user = publisher("shop", name="bob")
    remove(engine.client, prefix)
    assert by_service(user, shop(description="another word")) == ""
    assert engine.machines() == {"shop": 2, "shop.charge": 1}


def test_true_is_not_one(engine, publisher):
    """Python says they are equal; a nested machine in which one became the other is another one."""
    kid = CHARGE | {"meta": {"limit": 1}}
    by_service(publisher(name="alice"), shop(kid))
    said = by_service(publisher("shop", name="bob"), shop(kid | {"meta": {"limit": True}}))
    assert "shop.charge" in said


def test_a_token_that_names_one_machine_publishes_no_other(shared, publisher):
    user = publisher("shop", "shop.charge")
    _, text = tokens.make(user, "a test", tuple(RIGHTS), machines=["shop"])
    answer = Client().post(
        "/api/v1/machines", json.dumps({"definition": shop(FREE)}), content_type="application/json",
        headers={"Authorization": f"Bearer {text}"},
    )  # fmt: skip
    assert answer.status_code == 403
    assert answer.json()["machine"] == "shop.charge"
    assert shared.machines() == {"shop": 1, "shop.charge": 1}


def test_the_command_line_leaves_an_entry_for_each(engine, db, tmp_path):
    file = tmp_path / "shop.json"
    file.write_text(json.dumps(shop()), encoding="utf-8")
    call_command("machine", "publish", str(file), "--notes", WHY, stdout=io.StringIO())
    call_command("machine", "import", str(file), "--publish", stdout=io.StringIO())
    assert [(machine, outcome, target) for _, machine, outcome, target in entries()] == [
        ("shop.charge", "done", "v1"), ("shop", "done", "v1"), ("shop", "done", "v1"),
    ]  # fmt: skip
    assert {entry.source for entry in AuditEntry.objects.filter(action="publish")} == {"command line"}


def test_a_file_of_another_format_asks_for_the_same(shared, publisher, tmp_path):
    scxml = (
        '<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" name="shop" initial="open">'
        '<state id="open"><invoke id="charge" type="scxml"><content>'
        '<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" initial="paid"><final id="paid"/></scxml>'
        '</content></invoke><transition event="done.invoke.charge" target="shut"/></state><final id="shut"/></scxml>'
    )
    submission = read(scxml, format="scxml")
    assert (submission.errors, list(submission.definition["machines"])) == ([], ["charge"])
    said = by_text(publisher("shop"), scxml, "scxml")
    assert "shop.charge" in said
    assert shared.machines() == {"shop": 1, "shop.charge": 1}


def by_text(user: Any, text: str, format: str) -> str:
    _, secret = tokens.make(user, "a test", tuple(RIGHTS))
    answer = Client().post(
        "/api/v1/machines", json.dumps({"text": text, "format": format, "reason": WHY}),
        content_type="application/json", headers={"Authorization": f"Bearer {secret}"},
    )  # fmt: skip
    return "" if answer.status_code == 201 else answer.content.decode()


def test_a_check_does_not_tell_what_a_machine_of_others_is(shared, publisher):
    user = publisher("shop")
    _, text = tokens.make(user, "a test", tuple(RIGHTS))
    asked = shop(FREE)
    answer = Client().post(
        "/api/v1/definitions/check", json.dumps({"definition": asked}), content_type="application/json",
        headers={"Authorization": f"Bearer {text}"},
    )  # fmt: skip
    assert answer.status_code == 200
    assert "treasury" not in answer.content.decode()
    assert entries() == []


@pytest.mark.parametrize("name", sorted(builtin_machines.NAMES))
def test_no_nested_machine_has_the_name_of_one_of_the_product(engine, publisher, name):
    definition = shop() | {"machines": {"charge": CHARGE | {"machines": {name: CHARGE}}}}
    (found,) = builtin_machines.shadowing(definition)
    assert (found.code, found.path) == ("SB115", f"machines.charge.machines.{name}")
    with pytest.raises(DefinitionError) as refused:
        definitions.publish(Actor(publisher()), definition)
    assert refused.value.findings == [found]
    assert read(json.dumps(definition)).errors == [found]
    assert engine.machines() == {}


def test_the_names_of_the_product_are_those_it_ships():
    folder = Path(builtin_machines.__file__).parents[1]
    shipped = {path.stem for path in folder.rglob("definitions/*.json") if path.parent.parent.name != "engine"}
    assert shipped == builtin_machines.NAMES


@pytest.mark.pure
def test_two_nested_machines_of_one_name_are_found():
    definition = shop() | {"machines": {"charge": CHARGE, "a.b": CHARGE, "a": CHARGE | {"machines": {"b": FREE}}}}
    (found,) = [finding for finding in check(definition) if finding.is_error]
    assert (found.code, found.path) == ("SB115", "machines.a.machines.b")
    assert '"shop.a.b"' in found.message


@pytest.mark.pure
def test_there_is_a_limit_to_what_comes_along():
    definition = shop() | {"machines": {f"m{number}": FREE for number in range(MAX_EMBEDDED + 1)} | {"charge": FREE}}
    found = [finding for finding in check(definition) if finding.is_error]
    assert [(finding.code, finding.path) for finding in found] == [("SB111", "machines")]


def test_a_restored_machine_does_not_bring_old_nested_ones_back(engine, publisher, prefix):
    """An old version holds the nested machine as it was then."""
    user = publisher()
    by_service(user, shop(CHARGE))
    by_service(user, shop(FREE))
    remove(engine.client, prefix)
    publishing.restore()
    assert engine.machines() == {"shop": 2, "shop.charge": 2}
    assert engine.versions("shop.charge") == [1, 2]
    assert engine.definition("shop.charge") == FREE | {"id": "shop.charge"}


def test_a_nested_machine_that_sql_never_saw_is_restored_with_the_one_that_brought_it(engine, prefix, db):
    engine.publish(shop())
    publishing.adopt("shop")
    remove(engine.client, prefix)
    publishing.restore()
    assert engine.machines() == {"shop": 1, "shop.charge": 1}
