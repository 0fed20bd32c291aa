"""To guess a hidden value costs: ten times an hour for each person and instance, each in the audit."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from machines.catalog import publishing
from machines.engine import Engine, Refused
from machines.instances import actions as instances
from machines.instances import queries
from machines.instances.bulks import Order
from machines.instances.bulks import actions as bulks
from machines.instances.queries import explain_all, inspect
from machines.integrations.binding import reading
from machines.models import AuditEntry
from machines.people import tokens
from machines.people.actor import Actor
from machines.people.errors import GuessedTooOften
from machines.people.permissions import RIGHTS
from machines.schedules import actions as schedules
from tests.configuration import configure

WHY = "a test"
SAFE = {
    "id": "safe",
    "initial": "shut",
    "context": {
        "type": "object",
        "properties": {
            "pin": {"type": "integer", "default": 4711, "sensitive": True},
            "knocks": {"type": "integer", "default": 0},
        },
    },
    "events": {name: {"payload": {"g": {"type": "integer"}}} for name in ("open", "turn")},
    "states": {
        "shut": {
            "on": {
                "open": {"target": "wide", "guard": "pin < event.g"},
                "turn": {"actions": {"set": {"knocks": "1 if pin < event.g else 0"}}},
                "knock": {"actions": {"set": {"knocks": "knocks + 1"}}},
            }
        },
        "wide": {},
    },
}


@pytest.fixture
def safe(engine: Engine, db: None) -> Engine:
    publishing.publish(SAFE)
    for id in ("s-1", "s-2"):
        engine.create("safe", id)
    return engine


@pytest.fixture
def guesser(db: None) -> Any:
    """May see, fire and operate, and not reveal."""
    return make_user("gus", "view", "fire", "operate")


def make_user(name: str, *rights: str) -> Any:
    user = get_user_model().objects.create_user(name, is_staff=True)
    codes = [RIGHTS[right].partition(".")[2] for right in rights]
    user.user_permissions.set(Permission.objects.filter(codename__in=codes, content_type__app_label="machines"))
    return get_user_model().objects.get(pk=user.pk)


def browse(user: Any, **sent: Any) -> int:
    client = Client()
    client.force_login(user)
    sent = {"event": "open", "expect": "1", "reason": WHY, "key": "k"} | sent
    return client.post(reverse("signalbox:fire", args=["safe", "s-1"]), sent).status_code


def call(user: Any, address: str, **body: Any) -> int:
    _, secret = tokens.make(user, "a test", ("view", "fire", "operate"))
    headers = {"Authorization": f"Bearer {secret}"}
    address = f"/api/v1/machines/safe/instances/s-1/{address}"
    return Client().post(address, json.dumps(body), content_type="application/json", headers=headers).status_code


def fire(user: Any, guess: int) -> None:
    with pytest.raises(Refused):
        instances.fire(Actor(user, "page"), "safe", "s-1", "open", {"g": guess})


DOORS = {
    "explain": lambda user, g: queries.explain(Actor(user, "page"), "safe", "s-1", "open", {"g": g}),
    "a computed value": lambda user, g: queries.explain(Actor(user, "page"), "safe", "s-1", "turn", {"g": g}),
    "look": lambda user, g: instances.preview_event(Actor(user, "page"), "safe", "s-1", "open", {"g": g}),
    "fire": fire,
    "model field": lambda user, g: reading.explain(Field(), "s-1", "open", {"g": g}, user),
}


class Field:
    machine = "safe"


@pytest.mark.parametrize("door", DOORS)
def test_the_eleventh_is_refused_and_the_audit_has_each(safe, guesser, door):
    for guess in range(10):
        DOORS[door](guesser, guess)
    with pytest.raises(GuessedTooOften, match="this reads pin of safe, which is hidden from you: 10/h"):
        DOORS[door](guesser, 10)
    action = "fire" if door == "fire" else "explain"
    entries = list(AuditEntry.objects.filter(action=action, machine="safe", instance="s-1").order_by("pk"))
    assert [entry.detail["payload"]["g"] for entry in entries] == list(range(11))
    assert (entries[-1].outcome, entries[-1].detail["code"], entries[-1].actor) == ("refused", "SB717", "gus")
    assert "4711" not in json.dumps([entry.detail for entry in entries])
    with pytest.raises(GuessedTooOften):
        DOORS[door](guesser, 11)
    assert AuditEntry.objects.filter(action=action).count() == 11, "a refusal is written once"


def test_all_doors_have_one_budget(safe, guesser):
    actor = Actor(guesser, "page")
    for guess in range(5):
        queries.explain(actor, "safe", "s-1", "open", {"g": guess})
        fire(guesser, guess)
    assert browse(guesser, **{"payload-g": "5"}) == 429
    assert browse(guesser, check="1") == 429
    assert call(guesser, "events", event="open", payload={"g": 5}) == 429
    assert call(guesser, "explanations", event="open", payload={"g": 5}) == 429
    assert safe.get("safe", "s-1").state == "shut"


def test_the_budget_is_of_a_person_and_an_instance(safe, guesser):
    for guess in range(10):
        queries.explain(Actor(guesser, "page"), "safe", "s-1", "open", {"g": guess})
    queries.explain(Actor(guesser, "page"), "safe", "s-2", "open", {"g": 1})
    queries.explain(Actor(make_user("ann", "view"), "page"), "safe", "s-1", "open", {"g": 1})


def test_who_may_reveal_programs_and_events_that_read_nothing_hidden_have_no_limit(safe, guesser):
    for actor in (Actor(make_user("rita", "view", "fire", "reveal"), "page"), Actor.console()):
        for guess in range(12):
            queries.explain(actor, "safe", "s-1", "open", {"g": guess})
    for _ in range(12):
        instances.fire(Actor(guesser, "page"), "safe", "s-1", "knock")
    assert not AuditEntry.objects.filter(action="explain").exists()


def test_a_setting_says_how_many(safe, guesser, settings):
    configure(settings, GUESS_RATE="2/m")
    for guess in range(2):
        queries.explain(Actor(guesser, "page"), "safe", "s-1", "open", {"g": guess})
    with pytest.raises(GuessedTooOften, match="2/m for each person and instance"):
        queries.explain(Actor(guesser, "page"), "safe", "s-1", "open", {"g": 3})
    configure(settings, GUESS_RATE="off")
    queries.explain(Actor(guesser, "page"), "safe", "s-1", "open", {"g": 3})


def test_bulks_and_schedules_are_no_way_around(safe, guesser):
    actor = Actor(guesser, "page")
    order = Order("safe", "fire", actor.name, WHY, {"state": "shut"}, event="open")
    for guess in range(10):
        bulks.start(actor, replace(order, payload={"g": guess}))
    with pytest.raises(GuessedTooOften):
        bulks.start(actor, replace(order, payload={"g": 10}))
    what = {"do": "fire", "machine": "safe", "instance": "s-1", "event": "open"}
    for guess in range(10):
        document = {"name": "n", "when": {"every": "1h"}, "what": what | {"payload": {"g": guess}}}
        schedules.put(actor, document)
    with pytest.raises(GuessedTooOften):
        schedules.put(actor, document | {"what": what | {"payload": {"g": 10}}})


def test_a_page_that_lists_events_is_one_guess_for_each_revision(safe, guesser):
    actor = Actor(guesser, "page")
    for _ in range(20):
        seen, redactor = inspect(actor, "safe", "s-1", events=["open", "knock"])
        explain_all(actor, "safe", "s-1", ["open"], redactor=redactor)
    assert AuditEntry.objects.filter(action="explain").count() == 1
    assert not isinstance(seen.explanations["open"], GuessedTooOften)
    for number in range(10):
        instances.fire(actor, "safe", "s-1", "knock")
        seen, _ = inspect(actor, "safe", "s-1", events=["open", "knock"])
        assert isinstance(seen.explanations["open"], GuessedTooOften) == (number == 9)
        assert not isinstance(seen.explanations["knock"], Exception)
    seen, _ = inspect(actor, "safe", "s-1", events=["open"])
    assert isinstance(seen.explanations["open"], GuessedTooOften), "nor when it is asked again"
    client = Client()
    client.force_login(guesser)
    assert client.get(reverse("signalbox:instance", args=["safe", "s-1"])).status_code == 200


STEPS = [
    ({"entry": {"set": {"knocks": "pin"}}}, "entry"),
    ({"always": {"target": "wide", "guard": "pin < knocks"}}, "always"),
    (
        {"on": {"knock": {"actions": {"raise": "inner"}}, "inner": {"target": "wide", "guard": "pin < knocks"}}},
        "raised",
    ),
]


@pytest.mark.parametrize(("state", "_"), STEPS, ids=[name for _, name in STEPS])
def test_what_a_step_takes_further_by_itself_counts_as_well(engine, db, guesser, state, _):
    on = {"knock": {"target": "next"}} if "on" not in state else {}
    states = {"shut": {"on": on} if on else state, "next": state if on else {}, "wide": {}}
    publishing.publish(SAFE | {"states": states, "events": {}})
    engine.create("safe", "s-1")
    actor = Actor(guesser, "page")
    for _ in range(10):
        queries.explain(actor, "safe", "s-1", "knock")
    with pytest.raises(GuessedTooOften):
        queries.explain(actor, "safe", "s-1", "knock")
    with pytest.raises(GuessedTooOften):
        instances.preview(actor, "edit", "safe", "s-1", changes={"knocks": 5})
    with pytest.raises(GuessedTooOften):
        instances.repair(actor, "edit", "safe", "s-1", changes={"knocks": 5}, reason=WHY)
