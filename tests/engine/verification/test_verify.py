"""``engine.verify``: seeded defects are found, sound machines are not blamed, and what was not decided is called so."""

import json
import random
import re

import pytest

from machines.engine import BadInput, DefinitionError
from machines.engine.definitions import compile_definition
from machines.engine.expressions import parse
from machines.engine.verification.dead_guards import can_hold
from tests.cases import for_each
from tests.engine.builders import ROOT, counter, door, errand, example, fields, machine

from .defects import DEFECTS, END

EXAMPLES = ("activation", "delivery", "payment", "service_activation", "new_device")


def of(findings, *verdicts):
    return [one for one in findings if one.verdict in verdicts]


def codes(findings, verdict="found"):
    return {one.code for one in of(findings, verdict)}


@for_each("code, what, definition", DEFECTS)
def test_a_seeded_defect_is_found(engine, code, what, definition):
    findings = engine.verify(definition)
    assert code in codes(findings), [str(one) for one in findings]
    assert not codes(findings, "proven") & codes(findings)
    for one in of(findings, "found"):
        assert one.path
        assert one.hint
        engine.simulate(definition, one.run, one.data)


def test_a_run_can_be_fired(engine):
    definition = next(body for code, what, body in DEFECTS if what == "a counter that is used up")
    (stuck,) = [one for one in engine.verify(definition) if one.code == "SB803"]
    engine.publish(definition)
    engine.create("m", "x", stuck.data)
    for event in stuck.run:
        engine.fire("m", "x", event)
    assert all(not engine.explain("m", "x", event).taken for event in ("go", "end"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_are_not_blamed(engine, name):
    assert not of(engine.verify(example(name)), "found")


BUILT_IN = sorted(
    set((ROOT / "machines").rglob("definitions/*.json")) - {ROOT / "machines/engine/definitions/schema.json"}
)


def test_there_are_machines_of_the_product():
    assert len(BUILT_IN) >= 4


@pytest.mark.parametrize("path", BUILT_IN, ids=lambda path: path.stem)
def test_the_machines_of_the_product_are_not_blamed(engine, path):
    definition = json.loads(path.read_text(encoding="utf-8"))
    assert not of(engine.verify(definition, budget=500), "found")


def test_the_machines_of_the_documentation_are_not_blamed(engine):
    blocks = re.findall(r"```json\n(.*?)```", "".join(path.read_text() for path in (ROOT / "docs").glob("*.md")), re.S)
    found = [one for block in blocks if '"states"' in block and isinstance(one := _read(block), dict) and "id" in one]
    sound = [one for one in found if not compile_definition(one).has_errors]
    assert len(sound) > 5
    for definition in sound:
        assert not of(engine.verify(definition, budget=500), "found"), definition["id"]


def _read(block):
    try:
        return json.loads(block)
    except ValueError:
        return None


@pytest.mark.parametrize("definition", [door(), counter(), machine("one", {"A": {}})], ids=["door", "counter", "one"])
def test_small_machines_are_not_blamed(engine, definition):
    findings = engine.verify(definition)
    assert not of(findings, "found", "undecided")


def test_a_dead_job_can_be_tried_again(engine):
    """A job whose failure nobody listens for leaves no dead end."""
    definition = errand()
    definition["states"]["Done"]["type"] = definition["states"]["Failed"]["type"] = "final"
    del definition["states"]["Busy"]["invoke"]["onError"]
    assert "SB803" not in codes(engine.verify(definition))


def test_what_the_budget_does_not_reach_is_undecided(engine):
    endless = machine(
        "endless",
        {
            "A": {"on": {"add": {"actions": {"set": {"n": "n + 1"}}}, "end": {"guard": "n == 100000", "target": "B"}}},
            "B": END,
        },
        context={"n": 0},
        properties=[{"always": "n < 100000"}],
    )
    findings = engine.verify(endless, budget=50)
    assert not of(findings, "found")
    assert {"SB801", "SB802", "SB811"} <= codes(findings, "undecided")
    assert not {"SB801", "SB802", "SB803", "SB805", "SB811"} & codes(findings, "proven")
    assert any("50 snapshots" in one.message or "within the budget" in one.message for one in findings)


def test_the_clock_is_not_decided(engine):
    timed = machine("timed", {"A": {"on": {"go": {"guard": "now > 4000000000", "target": "B"}, "end": "B"}}, "B": END})
    findings = engine.verify(timed)
    assert "SB802" not in codes(findings) | codes(findings, "proven")


def test_an_instance_that_cannot_begin_is_the_only_finding(engine):
    broken = machine("broken", {"A": {"entry": {"set": {"n": "1 / n"}}, "on": {"go": "B"}}, "B": END}, context={"n": 0})
    (one,) = of(engine.verify(broken), "found")
    assert (one.code, one.path, one.run) == ("SB810", "initial", ())
    assert one.message.startswith("an instance cannot begin: ")
    assert one.hint == "test for that before"


def test_data_given_at_the_creation_is_tried(engine):
    given = machine(
        "given",
        {"A": {"on": {"go": [{"guard": "amount > 100", "target": "Big"}, "Small"]}}, "Big": END, "Small": END},
        context=fields(amount="integer"),
    )
    assert {"SB801", "SB802", "SB810"} <= codes(engine.verify(given), "proven")


def test_a_declared_value_with_which_nothing_can_happen_is_given_at_the_creation(engine):
    parcel = machine(
        "parcel", {"A": {"on": {"go": {"guard": "weight > 0", "target": "B"}}}, "B": END}, context={"weight": 0}
    )
    findings = engine.verify(parcel)
    assert {"SB801", "SB802"} <= codes(findings, "proven")


def test_what_data_of_the_creation_leads_to_is_no_finding(engine):
    go = [{"guard": "amount > 0", "target": "Paying"}, "Free"]
    states = {"A": {"on": {"go": go}}, "Paying": {"on": {"paid": "Free"}}, "Free": END, "Lost": {"on": {"go": "Free"}}}
    findings = engine.verify(machine("order", states, context={"amount": 0}))
    assert [one.path for one in of(findings, "found") if one.code == "SB801"] == ["states.Lost"]
    sold = engine.verify(
        machine("order", {name: states[name] for name in states if name != "Lost"}, context={"amount": 0})
    )
    assert {"SB801", "SB802"} <= codes(sold, "proven"), [str(one) for one in sold]


def test_what_follows_guards_that_fail_is_no_finding(engine):
    """A part of an object that is not given is neither a value nor another one: both guards fail."""
    ends = dict.fromkeys("BCD", END)
    go = [{"guard": f"event.order.status {word} 'paid'", "target": end} for word, end in (("==", "B"), ("!=", "C"))]
    order = machine("order", {"A": {"on": {"go": [*go, "D"]}}} | ends)
    assert engine.simulate(order, ["go"])[-1].configuration == ["D"]
    found = engine.verify(order)
    assert not of(found, "found"), [str(one) for one in found]
    assert {"SB801", "SB810"} <= codes(found, "undecided")


def test_guards_with_many_values_are_not_judged():
    flags = [parse(f"f{number} == {number % 2 == 0}") for number in range(12)]
    conditions = [(flag, True) for flag in flags] + [(parse("f0 == False"), True)]
    assert can_hold(conditions, lambda term: ("boolean",), {})
    assert not can_hold(conditions[-2:] + conditions[:1], lambda term: ("boolean",), {})


# Properties

PAYING = {
    "Cart": {"on": {"authorize": "Authorized", "cancel": "Cancelled"}},
    "Authorized": {"on": {"capture": "Paid", "cancel": "Cancelled"}},
    "Paid": END,
    "Cancelled": END,
}


@pytest.mark.parametrize(
    ("property", "verdict"),
    [
        ({"never": "In('Paid') and In('Authorized')"}, "proven"),
        ({"never": "Paid"}, "found"),
        ({"always": "failed <= 3"}, "proven"),
        ({"always": "In('Cart')"}, "found"),
        ({"leads": ["Authorized", "In('Paid') or In('Cancelled')"]}, "proven"),
        ({"leads": ["Authorized", "Paid"]}, "found"),
    ],
)
def test_a_property_is_decided(engine, property, verdict):
    definition = machine("paying", PAYING, context={"failed": 0}, properties=[property])
    (one,) = [one for one in engine.verify(definition) if one.code == "SB811"]
    assert (one.verdict, one.path) == (verdict, "properties[0]")


def test_a_state_that_is_meant_never_to_be_reached_is_no_finding(engine):
    go = [{"guard": "n == 0", "target": "B"}, {"target": "Fail"}]
    states = {"A": {"on": {"go": go, "reset": {"actions": {"set": {"n": "0"}}}}}, "B": END, "Fail": END}
    definition = machine("m", states, context={"n": 0})
    assert "SB801" in codes(engine.verify(definition), "found")
    findings = engine.verify(definition | {"properties": [{"never": "Fail"}]})
    assert not of(findings, "found")
    assert {one.path for one in of(findings, "proven") if one.code == "SB811"} == {"properties[0]"}
    lying = definition | {"context": {"n": 1}, "properties": [{"never": "In('Fail') or In('A') and In('B')"}]}
    assert "SB811" in codes(engine.verify(lying), "found"), "it is still found where it is reached"


def test_a_violation_comes_with_the_shortest_run(engine):
    definition = machine("paying", PAYING, properties=[{"never": "Paid"}])
    (one,) = [one for one in engine.verify(definition) if one.code == "SB811"]
    assert one.run == ("authorize", "capture")
    assert engine.simulate(definition, one.run)[-1].state == "Paid"


@for_each("properties, code", [
        ("never", "SB104"), ([7], "SB104"), ([{}], "SB106"), ([{"never": "a", "always": "b"}], "SB106"),
        ([{"never": "missing > 3"}], "SB102"), ([{"never": "In('Nowhere')"}], "SB101"), ([{"never": "1 +"}], "SB109"),
        ([{"never": "event.x"}], "SB109"), ([{"leads": ["Cart"]}], "SB104"), ([{"sometimes": "Cart"}], "SB105"),
        ([{"never": 3}], "SB104"), ([{"never": "Cart"}] * 101, "SB111"),
    ])  # fmt: skip
def test_a_wrong_property_is_a_finding(engine, properties, code):
    with pytest.raises(DefinitionError) as found:
        engine.publish(machine("paying", PAYING, properties=properties))
    assert code in {finding.code for finding in found.value.findings}


def test_properties_are_published_and_kept(engine):
    definition = machine("paying", PAYING, properties=[{"never": "Paid", "description": "not yet"}])
    engine.publish(definition)
    assert engine.definition("paying")["properties"] == definition["properties"]
    assert "SB811" in codes(engine.verify("paying"))


# Bad input


def test_a_definition_with_errors_is_refused(engine):
    with pytest.raises(DefinitionError):
        engine.verify({"id": "x"})


@pytest.mark.parametrize("given", [{"budget": 0}, {"budget": "many"}, {"seconds": float("nan")}])
def test_a_budget_that_is_none(engine, given):
    with pytest.raises(BadInput):
        engine.verify(door(), **given)


def test_a_definition_made_to_explode_is_stopped(engine):
    regions = {
        f"R{i}": {
            "initial": f"A{i}",
            "states": {f"A{i}": {"on": {f"go{i}": f"B{i}"}}, f"B{i}": {"on": {f"back{i}": f"A{i}"}}},
        }
        for i in range(20)
    }
    bomb = {"id": "bomb", "type": "parallel", "states": regions}
    findings = engine.verify(bomb, budget=200)
    assert not of(findings, "found")
    assert "SB803" in codes(findings, "undecided")


def test_nothing_is_stored(engine):
    engine.verify(door())
    assert not engine.client.keys(f"{engine.keys.prefix}{{door*")


# Random lives never contradict what was found or proven


@pytest.mark.parametrize("name", EXAMPLES)
def test_random_runs_do_not_contradict(engine, name):
    definition = example(name)
    findings = engine.verify(definition)
    lost = {one.path for one in of(findings, "found") if one.code == "SB801"}
    source = random.Random(7)
    names = [event["event"] for event in engine.simulate(definition, [])[0].next] or ["none"]
    for _ in range(5):
        steps = engine.simulate(definition, [source.choice([*names, {"advance": "next"}]) for _ in range(20)])
        assert not {f"states.{step.state}" for step in steps} & lost
        stuck = not steps[-1].done and not (steps[-1].next or steps[-1].timers or steps[-1].jobs or steps[-1].children)
        assert not (stuck and "SB803" in codes(findings, "proven"))
