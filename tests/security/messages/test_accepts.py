"""A right on one machine is a boundary: what its instances send to others, or invoke, those others have to accept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from machines.catalog import builtin_machines
from machines.engine import Engine
from machines.engine.definitions import check, find_recipients, outline
from machines.formats import dump, load
from tests.cases import for_each
from tests.engine.builders import NOW, machine, publish
from tests.engine.messages.mailing import lost, teller, told

from .senders import REFUSED, closed, inviter, pair, tell, undelivered

ROOT = Path(__file__).parents[3]

# Who may send


@pytest.mark.parametrize("senders", [None, [], ["other"]])
def test_a_stranger_moves_no_instance_and_is_told_so(engine, senders):
    pair(engine, senders)
    tell(engine)
    assert (told(engine), lost(engine)) == ([], [REFUSED])
    (entry,) = undelivered(engine)
    assert (entry["event"], entry["machine"], entry["instance"], entry["why"]) == ("note", "noter", "x", REFUSED)
    assert (engine.get("noter", "x").revision, engine.live("teller").mail) == (1, 0)


def test_it_learns_nothing_of_which_instances_there_are(engine):
    pair(engine)
    tell(engine, "x")
    tell(engine, "nobody")
    assert lost(engine) == [REFUSED, REFUSED]


@pytest.mark.parametrize("senders", [["teller"], ["other", "teller"], ["*"]])
def test_who_is_named_is_heard(engine, senders):
    tell(pair(engine, senders))
    assert (told(engine), lost(engine)) == ([7], [])


def test_a_machine_sends_to_instances_of_its_own(engine):
    send = {"send": {"event": "note", "to": {"machine": "noter", "id": "'y'"}, "data": {"n": "1"}}}
    publish(engine, closed(senders=[], go={"actions": send}), "x", "y")
    engine.fire("noter", "x", "go")
    assert told(engine, "y") == [1]


def family(engine: Engine, *, sends: dict[str, Any], listens: dict[str, Any] | None = None) -> str:
    """A parent ``p`` and its child; the child's id. Neither machine says whom it accepts."""
    note = {"note": {"actions": {"append": {"got": "event.n"}}}}
    publish(engine, machine("kid", {"A": {"on": sends | note}, "Z": {"type": "final"}}, context={"got": []}))
    on = note | {"pass": {"actions": {"send": {"event": "note", "to": "event.to", "data": {"n": "1"}}}}}
    publish(
        engine,
        machine("mother", {"A": {"invoke": {"src": "machine:kid", "id": "k"}, "on": on}}, context={"got": []}),
        "p",
    )
    (one,) = engine.find("kid")
    return one.id


@pytest.mark.parametrize("to", ["'#_parent'", {"machine": "mother", "id": "'p'"}])
def test_a_child_is_heard_by_its_parent(engine, to):
    kid = family(engine, sends={"go": {"actions": {"send": {"event": "note", "to": to, "data": {"n": "2"}}}}})
    engine.fire("kid", kid, "go")
    assert told(engine, "p", "mother") == [2]


def test_what_a_child_sends_with_its_last_step_is_heard(engine):
    send = {"send": {"event": "note", "to": "'#_parent'", "data": {"n": "3"}}}
    kid = family(engine, sends={"go": {"target": "Z", "actions": send}})
    engine.fire("kid", kid, "go")
    assert (told(engine, "p", "mother"), engine.get("mother", "p").children) == ([3], {})


def test_a_parent_is_heard_by_its_child_by_either_address_and_by_no_other_of_the_machine(engine):
    kid = family(engine, sends={})
    engine.create("kid", "stranger")
    for to in ("#_k", f"#_scxml_kid/{kid}", "#_scxml_kid/stranger"):
        engine.fire("mother", "p", "pass", {"to": to})
    assert (told(engine, kid, "kid"), told(engine, "stranger", "kid")) == ([1, 1], [])


def test_a_child_is_not_heard_by_other_instances_of_its_parents_machine(engine):
    send = {"send": {"event": "note", "to": {"machine": "mother", "id": "'q'"}, "data": {"n": "2"}}}
    kid = family(engine, sends={"go": {"actions": send}})
    engine.create("mother", "q")
    engine.fire("kid", kid, "go")
    assert told(engine, "q", "mother") == []


def test_the_current_version_says_it_for_instances_of_all_versions(engine):
    pair(engine, ["teller"])
    engine.publish(closed(senders=[]))
    tell(engine)
    assert (told(engine), engine.get("noter", "x").version) == ([], 1)
    engine.publish(closed(senders=["teller"]) | {"description": "again"})
    tell(engine)
    assert told(engine) == [7]


def test_a_delayed_one_is_asked_when_it_arrives(engine):
    publish(engine, closed(senders=["late"]), "x")
    send = {"send": {"event": "note", "to": {"machine": "noter", "id": "'x'"}, "data": {"n": "1"}, "delay": "1s"}}
    publish(engine, machine("late", {"A": {"on": {"go": {"actions": send}}}}), "t")
    engine.fire("late", "t", "go", now=NOW)
    engine.publish(closed(senders=[]))
    engine.tick(now=NOW + 2_000)
    assert (told(engine), len(undelivered(engine, "late"))) == ([], 1)


def test_nothing_is_held_for_a_suspended_instance_that_would_be_refused(engine):
    pair(engine)
    engine.suspend("noter", "x", actor="a", reason="r")
    tell(engine)
    assert lost(engine) == [REFUSED]
    assert engine.client.llen(engine.keys.partition("noter").held("x")) == 0


def test_what_was_held_is_asked_again_when_the_instance_goes_on(engine):
    pair(engine, ["teller"])
    engine.suspend("noter", "x", actor="a", reason="r")
    tell(engine)
    engine.publish(closed(senders=[]))
    engine.resume("noter", "x", actor="a", reason="r")
    engine.tick()
    assert (told(engine), lost(engine)) == ([], [REFUSED])


def test_each_partition_asks(many):
    publish(many, closed(), *(f"x{n}" for n in range(12)))
    publish(many, teller(), "t")
    for n in range(12):
        tell(many, f"x{n}")
    assert (lost(many), [told(many, f"x{n}") for n in range(12)]) == ([REFUSED] * 12, [[]] * 12)


@pytest.fixture
def many(engine, redis_url, prefix):
    """An engine whose machines have four partitions."""
    spread = Engine.from_url(redis_url, prefix=prefix, partitions=4)
    yield spread
    spread.client.close()


# Who may invoke


COMPUTED = {"expr": "which"}


@pytest.mark.parametrize(
    ("src", "senders", "begins"),
    [
        ("machine:noter", None, True),
        ("machine:noter", ["inviter"], True),
        ("machine:noter", ["*"], True),
        ("machine:noter", [], False),
        ("machine:noter", ["other"], False),
        (COMPUTED, None, False),
        (COMPUTED, ["inviter"], True),
        (COMPUTED, ["*"], True),
        (COMPUTED, ["other"], False),
    ],
)
def test_who_may_invoke(engine, src, senders, begins):
    publish(engine, closed(senders=senders))
    publish(engine, inviter(src), "i")
    engine.fire("inviter", "i", "go")
    after = engine.get("inviter", "i")
    assert (engine.live("noter").total, after.state) == ((1, "B") if begins else (0, "Failed"))
    if not begins:
        assert after.data["why"].startswith("the machine 'noter' accepts nothing from 'inviter'")
        assert [entry["kind"] for entry in undelivered(engine, "inviter")] == ["start"]


def test_a_machine_invokes_itself(engine):
    states = {"A": {"on": {"go": "B"}}, "B": {"invoke": {"src": COMPUTED}}}
    publish(engine, machine("nest", states, context={"which": "nest"}, accepts={"from": []}), "i")
    engine.fire("nest", "i", "go")
    assert engine.live("nest").total == 2


def test_a_computed_name_may_be_one_that_the_definition_names_or_brings_along(engine):
    publish(engine, closed())
    definition = inviter(COMPUTED)
    definition["states"]["C"] = {"invoke": {"src": "machine:noter", "id": "l"}}
    publish(engine, definition, "i")
    engine.fire("inviter", "i", "go")
    assert engine.live("noter").total == 1
    kid = machine("kid", {"A": {}})
    publish(engine, inviter(COMPUTED, machines={"kid": kid}) | {"id": "host"})
    engine.create("host", "h", {"which": "host.kid"})
    engine.fire("host", "h", "go")
    assert engine.live("host.kid").total == 1


# Definitions


@for_each(
    "accepts, line",
    [
        ("order", "SB104 accepts: expected an object with from"),
        ({}, 'SB106 accepts.from: "from" is missing'),
        ({"from": "order"}, "SB104 accepts.from: expected a list of machines"),
        ({"from": [1]}, "SB104 accepts.from[0]: expected the name of a machine"),
        ({"from": ["a b"]}, 'SB107 accepts.from[0]: the machine name "a b" must be'),
        ({"from": ["a", "a"]}, 'SB115 accepts.from[1]: "a" is listed twice'),
        ({"from": [], "to": []}, 'SB105 accepts.to: no key "to"'),
        ({"from": [f"m{n}" for n in range(101)]}, "SB114 accepts.from: 101 machines; at most 100"),
        ({"from": ["*"]}, "SB216 accepts.from[0]: every machine, of any publisher, may send to this one"),
    ],
)
def test_a_mistake_is_named_with_its_place(accepts, line):
    (found,) = [one for one in check(machine("m", {"A": {}}, accepts=accepts)) if one.path.startswith("accepts")]
    assert str(found).startswith(line)
    assert found.hint or found.code in ("SB104", "SB115", "SB114", "SB105")
    assert found.is_error is (found.code != "SB216")


def test_a_short_name_stands_for_a_machine_inside_the_definition(engine):
    inside = machine("host", {"A": {}}, machines={"kid": machine("kid", {"A": {}})}, accepts={"from": ["kid", "else"]})
    engine.publish(inside)
    assert outline(engine.definition("host")).accepts == ("host.kid", "else")


@pytest.mark.parametrize("format", ["json", "yaml", "scxml", "xstate"])
def test_formats_that_are_read_again_keep_it(format):
    definition = closed(senders=["billing", "order"])
    text, _ = dump(definition, format)
    assert load(text, format)["accepts"] == {"from": ["billing", "order"]}


@pytest.mark.parametrize("format", ["mermaid", "dot"])
def test_diagrams_say_that_they_leave_it_out(format):
    _, findings = dump(closed(senders=["order"]), format)
    assert ("SB222", "accepts") in [(one.code, one.path) for one in findings]


@for_each(
    "action, found",
    [
        ({"send": {"event": "x", "to": {"machine": "order", "id": "n"}}}, [("send", "order")]),
        ({"send": {"event": "x", "to": "'#_scxml_order/o-1'"}}, [("send", "order")]),
        ({"send": {"event": "x", "to": "'#_scxml_order/' + n"}}, [("send", "order")]),
        ({"send": {"event": "x", "to": "'#_scxml_a/1' if n else '#_scxml_b/1'"}}, [("send", "a"), ("send", "b")]),
        ({"send": {"event": "x", "to": "trigger.origin"}}, []),
        ({"send": {"event": "x", "to": "n"}}, []),
        ({"send": {"event": "x", "to": "'#_scxml_' + n + '/1'"}}, []),
        ({"send": {"event": "x", "to": "'#_parent'"}}, []),
        ({"send": {"event": "x", "to": "'#_kid'"}}, []),
        ({"send": {"event": "x", "to": {"machine": "m", "id": "n"}}}, []),
        ({"send": "x"}, []),
        ({"if": [{"do": {"send": {"event": "x", "to": {"machine": "deep", "id": "n"}}}}]}, [("send", "deep")]),
    ],
)
def test_what_a_definition_sends_to_is_read_from_it(action, found):
    definition = machine("m", {"A": {"entry": action}}, context={"n": ""})
    assert [(one.kind, one.machine) for one in find_recipients(definition)] == found


def test_all_that_comes_with_the_product_says_who_may_send():
    shipped = [builtin_machines.definition(name) for name in ("map_reduce", "map_reduce_chunk", "bulk")]
    samples = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "examples").glob("*.json"))]
    named = {one["id"]: one["accepts"]["from"] for one in [*shipped, *samples] if "accepts" in one}
    assert named.keys() >= {"map_reduce", "map_reduce_chunk", "bulk", "payment"}
    for definition in [*shipped, *samples]:
        for one in find_recipients(definition):
            assert definition["id"] in named[one.machine], f"{definition['id']} reaches {one.machine}"
        assert "*" not in named.get(definition["id"], [])
