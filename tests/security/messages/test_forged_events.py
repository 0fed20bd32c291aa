"""Events that only the engine makes: nobody else makes one, by whichever way; the engine still does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.urls import reverse

from machines.catalog.admin import instance_url
from machines.catalog.publishing import publish as record
from machines.engine import BadInput, DefinitionError, Engine, Fire, Refused
from machines.engine import limits as names
from machines.engine.definitions import compile, compute_digest, outline
from tests.cases import for_each
from tests.engine.builders import NOW, machine, publish
from tests.engine.families import child, parent
from tests.instances.bulks.builders import finished

from .forging import FORGED, NAMES, RESERVED, TO_BANK

BANK: dict[str, Any] = {
    "id": "bank",
    "type": "parallel",
    "accepts": {"from": ["*"]},
    "errors": "refuse",
    "context": {"heard": ""},
    "on": {"*": {"actions": {"set": {"heard": "trigger.name"}}}},
    "states": {
        "Money": {
            "initial": "Charging",
            "states": {
                "Charging": {
                    "invoke": {"src": "charge", "id": "Charging", "onDone": "Paid", "onError": "Unpaid"},
                    "after": {"1h": "Unpaid"},
                    "on": {"error.execution": "Unpaid"},
                },
                "Paid": {},
                "Unpaid": {},
            },
        },
        "Goods": {
            "initial": "Packing",
            "states": {
                "Packing": {"initial": "Open", "states": {"Open": {}, "Shut": {"type": "final"}}, "onDone": "Packed"},
                "Packed": {},
            },
        },
    },
}
START = ["Charging", "Open"]


def states(engine: Engine, id: str = "b", name: str = "bank") -> list[str]:
    return sorted(engine.get(name, id).configuration)


def thief(**actions: Any) -> dict[str, Any]:
    """Does each of these on the event it stands under, for the name in its data field ``forged``."""
    on = {event: {"actions": action} for event, action in actions.items()}
    told = {"actions": {"set": {"told": "event.message"}}}
    definition = machine("thief", {"A": {"on": on | {"error.communication": told}}}, errors="refuse")
    return definition | {"context": {"forged": "", "told": ""}}


NAME = {"expr": "forged"}


@pytest.fixture
def bank(engine: Engine) -> Engine:
    """A payment ``b`` whose bank takes messages from everyone: names alone have to keep it."""
    engine.publish(BANK)
    engine.create("bank", "b")
    assert states(engine) == START
    return engine


def old_program(engine: Engine, definition: dict[str, Any], swap: str, name: str) -> None:
    """Published by a release that let the name pass: ``swap`` stands for it."""
    program = json.loads(json.dumps(compile(definition)).replace(swap, name))
    row = (compute_digest(program), json.dumps(program), json.dumps(definition), "00", 1, "")
    root = engine.keys.partition(definition["id"]).root
    assert engine.client.fcall("sb_publish", 1, root, *row)[0] == "OK"
    engine.client.hset(engine.keys.machines, definition["id"], 1)


def old_message(engine: Engine, event: str, sender: str = "thief", id: str = "b") -> None:
    """What the commit of an earlier release may have left in an outbox."""
    body = json.dumps({"event": event, "data": "{}", "from": {"machine": sender, "id": "t"}, "sendid": "s"})
    fields = {"kind": "event", "machine": "bank", "id": id, "body": body}
    engine.client.xadd(engine.keys.partition(sender).outbox, fields)


def undelivered(engine: Engine, name: str = "thief") -> list[dict[str, Any]]:
    entries = engine.client.xrange(engine.keys.partition(name).log)
    return [json.loads(entry["data"]) for _, entry in entries if entry["name"] == "undelivered"]


# The rule


@for_each("name, reserved", NAMES.items())
def test_python_and_the_functions_library_agree_on_the_names(bank, name, reserved):
    assert names.is_reserved_event(name) is reserved
    root = bank.keys.partition("bank").root
    fired = bank.client.fcall("sb_fire", 1, root, "b", name, "", "", "", "", "", "")
    assert (fired[0] == "BADARG") is reserved, fired
    asked = bank.client.fcall_ro("sb_explain", 1, root, "b", name, "", "")
    assert (asked[0] == "BADARG") is reserved, asked


# Sending and raising


@pytest.mark.parametrize("forged", FORGED)
@pytest.mark.parametrize("delay", [None, "1s"])
def test_a_computed_name_is_refused_when_it_is_sent(bank, forged, delay):
    send = {"event": NAME, "to": TO_BANK} | ({"delay": delay} if delay else {})
    publish(bank, thief(go={"send": send}), now=NOW)
    bank.create("thief", "t", {"forged": forged}, now=NOW)
    with pytest.raises(Refused, match="the engine's own"):
        bank.fire("thief", "t", "go", now=NOW)
    bank.tick(now=NOW + 5_000)
    assert (states(bank), bank.get("bank", "b").data["heard"]) == (START, "")


@pytest.mark.parametrize("forged", FORGED)
@pytest.mark.parametrize("verb", ["raise", "send"])
def test_a_machine_cannot_forge_its_own_events_either(bank, forged, verb):
    on = {"go": {"actions": {verb: {"event": {"expr": "event.name"}}}}}
    publish(bank, BANK | {"id": "own", "on": on}, "o")
    with pytest.raises(Refused, match="the engine's own"):
        bank.fire("own", "o", "go", {"name": forged})
    assert states(bank, "o", "own") == START


def test_where_errors_are_raised_the_action_fails_and_the_step_goes_on(bank):
    send = {"send": {"event": {"expr": "'done.' + event.kind"}, "to": TO_BANK}}
    heard = {"actions": {"set": {"told": "event.message"}}}
    on = {"go": {"target": "B", "actions": send}}
    definition = machine("loud", {"A": {"on": on}, "B": {"on": {"error.execution": heard}}}, context={"told": ""})
    publish(bank, definition | {"errors": "raise"}, "l")
    after = bank.fire("loud", "l", "go", {"kind": "invoke.Charging"})
    assert (after.state, states(bank)) == ("B", START)
    assert "'done.invoke.Charging' is the engine's own" in after.data["told"]


@pytest.mark.parametrize("forged", FORGED)
def test_a_child_and_a_parent_forge_nothing_for_each_other(engine, forged):
    say = {"actions": {"send": {"event": {"expr": "event.name"}, "to": "'#_parent'"}}}
    kid = child()
    kid["states"]["A"]["on"]["forge"] = say
    publish(engine, kid)
    publish(engine, parent(), "p")
    engine.fire("parent", "p", "start")
    (one,) = engine.find("child")
    for name, id, event in (("child", one.id, "forge"), ("parent", "p", "pass")):
        with pytest.raises(Refused, match="the engine's own"):
            engine.fire(name, id, event, {"name": forged})


def test_what_a_parent_is_told_by_the_engine_is_not_forwarded_to_a_child(engine):
    """Two invokes of one id, in two machines: the end of one is not the end of the other."""
    busy = {"invoke": {"src": "slow", "id": "work", "onDone": "Forged"}}
    publish(engine, machine("inner", {"A": busy, "Forged": {}}))
    states = {
        "A": {
            "invoke": [
                {"src": "machine:inner", "id": "kid", "autoforward": True},
                {"src": "quick", "id": "work", "onDone": {"actions": {"set": {"n": "n + 1"}}}},
            ]
        }
    }
    publish(engine, machine("outer", states, context={"n": 0}), "o")
    (job,) = engine.take("outer", "quick", "w")
    engine.complete(job)
    engine.tick()
    (kid,) = engine.find("inner")
    assert (engine.get("outer", "o").data["n"], kid.state) == (1, "A")


# Delivery


@pytest.mark.parametrize("forged", FORGED)
def test_one_that_an_earlier_release_took_is_not_delivered(bank, forged):
    publish(bank, thief(), "t")
    old_message(bank, forged)
    bank.tick()
    assert (states(bank), bank.get("bank", "b").data["heard"]) == (START, "")
    (entry,) = undelivered(bank)
    assert (entry["event"], entry["machine"], entry["instance"]) == (forged, "bank", "b")
    assert "is the engine's own" in entry["why"]
    assert "is the engine's own" in bank.get("thief", "t").data["told"], "its sender is told"
    assert bank.live("thief").mail == 0


def test_one_that_was_held_for_a_suspended_instance_is_not_applied(bank):
    publish(bank, thief(), "t")
    bank.suspend("bank", "b", actor="a", reason="r")
    held = {"kind": "event", "body": {"event": FORGED[0], "data": "{}", "from": {"machine": "thief", "id": "t"}}}
    bank.client.rpush(bank.keys.partition("bank").held("b"), json.dumps(held))
    bank.resume("bank", "b", actor="a", reason="r")
    assert states(bank) == START
    bank.tick()
    assert [entry["event"] for entry in undelivered(bank, "thief") + undelivered(bank, "bank")] == [FORGED[0]]


def test_a_delayed_one_that_an_earlier_release_armed_goes_nowhere_and_is_logged(bank):
    send = {"event": "forge_me", "to": TO_BANK, "delay": "1s", "id": "s"}
    definition = thief(go={"send": send})
    old_program(bank, definition, "never", "never")
    bank.create("thief", "t", now=NOW)
    bank.fire("thief", "t", "go", now=NOW)
    key = bank.keys.partition("thief").instance("t")
    bank.client.hset(key, "_timers", bank.client.hget(key, "_timers").replace("forge_me", FORGED[0]))
    assert bank.tick(now=NOW + 2_000) == 1
    assert (states(bank), bank.get("thief", "t").timers) == (START, [])
    assert "is the engine's own" in bank.get("thief", "t").data["told"]
    assert [entry["event"] for entry in undelivered(bank)] == [FORGED[0]]
    assert bank.live("thief").overdue == 0


@pytest.mark.parametrize(
    "action", [{"raise": "swap"}, {"send": {"event": "swap", "to": TO_BANK}}, {"emit": {"type": "swap"}}]
)
def test_a_program_of_an_earlier_release_does_it_no_more_and_goes_on_otherwise(bank, action):
    definition = thief(go=action)
    definition["states"]["A"]["on"]["leave"] = "B"
    definition["states"]["B"] = {}
    old_program(bank, definition, "swap", FORGED[0])
    bank.create("thief", "t")
    with pytest.raises(Refused, match="the engine's own"):
        bank.fire("thief", "t", "go")
    assert states(bank) == START
    assert bank.fire("thief", "t", "leave").state == "B"


def test_what_was_published_before_can_be_shown_and_restored_but_not_published_anew(engine):
    old = machine("old", {"A": {"on": {"go": {"actions": {"emit": {"type": "error.card"}}}}}})
    assert outline(old).id == "old"
    with pytest.raises(DefinitionError):
        engine.publish(old)
    assert engine.publish(old, version=3).version == 3
    with pytest.raises(DefinitionError):
        engine.publish(old | {"states": {"A": {"on": {"go": "nowhere"}}}}, version=4)


# Firing from outside


@for_each("forged", RESERVED)
def test_no_program_fires_one(bank, forged):
    for call in (bank.fire, bank.explain):
        with pytest.raises(BadInput, match="the engine's own") as caught:
            call("bank", "b", forged)
        assert caught.value.code == "SB401"
    (outcome,) = bank.fire_many([Fire("bank", "b", forged)])
    assert isinstance(outcome, BadInput)
    with pytest.raises(BadInput):
        bank.explain_many("bank", ["b"], forged)
    assert (states(bank), bank.get("bank", "b").revision) == (START, 1)


def test_not_even_one_that_a_program_of_an_earlier_release_knew(bank):
    """It had ``after.lunch`` among the events that may be fired."""
    definition = machine("lunch", {"A": {"on": {"swap": "B"}}, "B": {}}, events={"swap": {}})
    old_program(bank, definition, "swap", "after.lunch")
    bank.create("lunch", "x")
    reply = bank.client.fcall(
        "sb_fire", 1, bank.keys.partition("lunch").root, "x", "after.lunch", "", "", "", "", "", ""
    )
    assert (reply[0], bank.get("lunch", "x").state) == ("BADARG", "A")


@pytest.mark.parametrize("forged", FORGED)
def test_no_page_admin_or_api_fires_one(bank, as_, db, admin_client, forged):
    row = record(BANK).machine
    pages = as_("operator")
    page = reverse("signalbox:fire", args=["bank", "b"])
    assert pages.post(page, {"event": forged, "version": 1, "key": "k"}).status_code in (400, 404)
    admin_client.post(instance_url(row, "b"), {"event": forged, "expect": 1})
    one, several = {"event": forged}, {"calls": [{"id": "b", "event": forged}]}
    for path, body in (("instances/b/events", one), ("events", several)):
        answer = admin_client.post(f"/api/v1/machines/bank/{path}", json.dumps(body), content_type="application/json")
        assert answer.status_code != 404
    assert (states(bank), bank.get("bank", "b").revision) == (START, 1)


def test_no_bulk_fires_one(bank, db):
    with pytest.raises(BadInput, match="the engine's own"):
        finished(bank, machine="bank", event=FORGED[0], filter={"state": "Charging"})
    assert states(bank) == START


# The engine's own way


def test_the_end_of_work_of_states_of_children_and_timers_counts_as_ever(bank):
    (job,) = bank.take("bank", "charge", "w")
    bank.complete(job)
    assert states(bank) == ["Open", "Paid"]
    publish(bank, BANK, "late", now=NOW)
    bank.tick(now=NOW + 3_700_000)
    assert "Unpaid" in states(bank, "late")
    publish(bank, BANK, "failed")
    failing = next(one for one in bank.take("bank", "charge", "w", count=5) if one.instance == "failed")
    bank.fail(failing, "no", retry=False)
    assert "Unpaid" in states(bank, "failed")


def test_the_end_of_a_job_that_comes_while_the_instance_is_suspended_counts_when_it_goes_on(bank):
    (job,) = bank.take("bank", "charge", "w")
    bank.suspend("bank", "b", actor="a", reason="r")
    bank.complete(job)
    assert states(bank) == START
    bank.resume("bank", "b", actor="a", reason="r")
    assert states(bank) == ["Open", "Paid"]


def test_the_end_of_a_child_and_of_a_state_count(engine):
    publish(engine, child())
    publish(engine, parent(), "p")
    engine.fire("parent", "p", "start")
    (one,) = engine.find("child")
    engine.fire("child", one.id, "end")
    assert engine.get("parent", "p").state == "Done"
    nested = {
        "W": {"initial": "a", "states": {"a": {"on": {"x": "b"}}, "b": {"type": "final"}}, "onDone": "Z"},
        "Z": {},
    }
    publish(engine, machine("nested", nested), "n")
    assert engine.fire("nested", "n", "x").state == "Z"
