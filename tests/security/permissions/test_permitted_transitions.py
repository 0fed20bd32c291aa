"""Who may take a transition is decided in the very call that commits it: nothing fits in between.

Between looking and doing, time goes on, ``random()`` is drawn anew, and another connection may put something else under
the same name. Whatever a look said, what is committed is what the person may do.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from machines.catalog import publishing
from machines.engine import Engine, NotAllowed
from machines.instances import actions as instances
from machines.instances import queries
from machines.instances.bulks import Order
from machines.instances.bulks import actions as bulks
from machines.models import AuditEntry
from machines.people import tokens
from machines.people.actor import Actor
from machines.people.permissions import RIGHTS
from machines.worker.registry import discover
from tests.engine.dumps import unchanged
from tests.instances.bulks.builders import step, work_off
from tests.instances.test_doors import browser, by_admin, by_page
from tests.pages.reading import read

EVEN = 1_800_000_000_000  # ms; one second later is odd
ODD = EVEN + 1000
WHY = "the customer asked"


def flat(*ways: dict[str, Any], **more: Any) -> dict[str, Any]:
    states = {"Open": {"on": {"refund": list(ways)}}, "Small": {}, "Large": {}}
    return {"id": "order", "initial": "Open", "states": states} | more


def pair(here: dict[str, Any], there: dict[str, Any]) -> dict[str, Any]:
    """The same event is heard in two regions."""
    regions = {
        name: {"initial": f"{name}1", "states": {f"{name}1": {"on": {"refund": way}}, f"{name}2": {}}}
        for name, way in (("a", here), ("b", there))
    }
    return {"id": "order", "type": "parallel", "states": regions}


KEPT = {"target": "Large", "allow": ["treasury", "board"]}
BY_TIME = flat({"target": "Small", "guard": "now % 2 == 0"}, KEPT)
BY_CHANCE = flat({"target": "Small", "guard": "random() < 0.5"}, KEPT)
IN_A_REGION = pair({"target": "a2"}, {"target": "b2", "guard": "now % 2 == 1", "allow": ["treasury"]})


def published(definition: dict[str, Any], engine: Engine, *ids: str) -> None:
    publishing.publish(definition)
    for id in ids or ("o-1",):
        engine.create("order", id)


def moments(engine: Engine, definition: dict[str, Any]) -> tuple[int, int]:
    """One at which the event takes what is open to all, and one at which it takes what is kept."""
    if definition is not BY_CHANCE:
        return EVEN, ODD
    drawn = {
        engine.explain("order", "o-1", "refund", now=at).outcome["configuration"][0]: at for at in range(EVEN, ODD, 20)
    }
    return drawn["Small"], drawn["Large"]


@pytest.mark.parametrize("definition", [BY_TIME, BY_CHANCE, IN_A_REGION], ids=["time", "chance", "region"])
def test_what_is_kept_for_others_when_it_is_done_is_refused_whatever_a_look_said(engine, actor, between, definition):
    published(definition, engine)
    looked, done = moments(engine, definition)
    ann = actor("ann", "view", "fire")
    between.clock |= {"sb_explain": looked, "sb_fire": done}
    assert instances.preview_event(ann, "order", "o-1", "refund").taken
    with unchanged(engine), pytest.raises(NotAllowed) as caught:
        instances.fire(ann, "order", "o-1", "refund")
    assert (caught.value.code, caught.value.groups[0], caught.value.event) == ("SB433", "treasury", "refund")
    entry = AuditEntry.objects.get(action="fire")
    assert (entry.outcome, entry.detail["code"]) == ("refused", "SB433")
    between.clock["sb_fire"] = looked
    assert instances.fire(ann, "order", "o-1", "refund").revision == 2


def test_who_is_in_one_of_the_groups_takes_it_and_so_do_superusers_and_programs(engine, actor, between):
    published(BY_TIME, engine, "o-1", "o-2", "o-3")
    between.clock["sb_fire"] = ODD
    people = {"o-1": actor("tina", group="board"), "o-2": actor("root", boss=True), "o-3": Actor("a program", "test")}
    for id, one in people.items():
        assert instances.fire(one, "order", id, "refund").state == "Large"


def test_an_instance_that_is_made_anew_in_between_is_judged_by_its_own_rules(engine, actor, between, redis_url, prefix):
    published(flat({"target": "Small"}), engine)

    def meanwhile() -> None:
        other = Engine.from_url(redis_url, prefix=prefix)
        other.publish(flat(KEPT))
        other.delete("order", "o-1")
        other.create("order", "o-1")

    between.before["sb_fire"] = meanwhile
    with pytest.raises(NotAllowed):
        instances.fire(actor("ann", "view", "fire"), "order", "o-1", "refund")
    assert (engine.get("order", "o-1").state, engine.get("order", "o-1").revision) == ("Open", 1)


def test_a_bulk_moves_nothing_that_is_kept_for_others_when_its_turn_comes(engine, actor, between):
    discover()
    published(BY_TIME, engine)
    sue = actor("sue", "view", "fire", "operate")
    between.clock["sb_explain"] = EVEN
    made = bulks.start(sue, Order("order", "fire", sue.name, WHY, {"state": "Open"}, event="refund"))
    work_off(engine)
    assert made.rows()[0].verdict.word == "taken"
    bulks.run(sue, made.id)
    between.clock["sb_fire"] = ODD
    assert step(engine, "act") is not None
    (row,) = made.rows()
    assert row.outcome.word == "refused"
    assert "members of treasury or board" in row.outcome.why
    assert "SB433" in row.outcome.why
    assert engine.get("order", "o-1").revision == 1


def test_no_rule_takes_a_call_of_its_own(engine, actor, between):
    published(BY_TIME, engine)
    between.clock["sb_fire"] = EVEN
    ann = actor("ann", "view", "fire")
    queries.get(ann, "order", "o-1")  # the first call of a process asks for more
    between.sent.clear()
    instances.fire(ann, "order", "o-1", "refund")
    assert between.sent == {"sb_fire": 1}


# Every door


def by_api(user: Any, path: str, **body: Any) -> Any:
    _, secret = tokens.make(user, "a test", tuple(RIGHTS))
    headers = {"Authorization": f"Bearer {secret}"}
    address = f"/api/v1/machines/order/{path}"
    return Client().post(address, json.dumps(body), content_type="application/json", headers=headers)


@pytest.mark.parametrize("door", [by_page, by_admin], ids=["page", "admin"])
def test_pages_and_admin_say_whose_it_is(engine, person, between, door: Callable[..., int]):
    published(BY_TIME, engine)
    between.clock |= {"sb_explain": EVEN, "sb_fire": ODD}
    assert door(person("ann", "view", "fire"), "refund") in (403, 422)
    assert engine.get("order", "o-1").revision == 1
    detail = AuditEntry.objects.get(action="fire").detail
    assert detail["code"] == "SB433"
    assert "members of treasury or board" in detail["error"]


def test_a_page_names_the_groups_and_the_code(engine, person, between):
    published(BY_TIME, engine)
    between.clock |= {"sb_explain": EVEN, "sb_fire": ODD}
    sent = {"event": "refund", "expect": "1", "reason": WHY}
    address = reverse("signalbox:fire", kwargs={"machine": "order", "id": "o-1"})
    notice = read(browser(person("ann", "view", "fire")).post(address, sent)).one("section", id="refused").text
    assert "members of treasury or board (t2 to Large)" in notice
    assert "SB433" in notice


def test_the_api_says_which_transition_and_whose_it_is_for_one_event_and_for_many(engine, person, between):
    published(BY_TIME, engine)
    between.clock |= {"sb_explain": EVEN, "sb_fire": ODD}
    ann = person("ann", "view", "fire")
    alone = by_api(ann, "instances/o-1/events", event="refund")
    assert alone.status_code == 403
    (several,) = by_api(ann, "events", calls=[{"id": "o-1", "event": "refund"}]).json()["items"]
    for told in (alone.json(), several["error"]):
        assert (told["code"], told["transition"], told["target"]) == ("SB433", "t2", "Large")
        assert told["groups"] == ["treasury", "board"]
    assert engine.get("order", "o-1").revision == 1
