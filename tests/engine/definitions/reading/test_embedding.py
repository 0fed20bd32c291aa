"""Machines that a definition brings along, and invokes of machines."""

from __future__ import annotations

from machines.engine.definitions import check, compile, find_embedded, outline
from tests.engine.definitions.builders import found, machine

KID = {"initial": "a", "states": {"a": {"on": {"x": "b"}}, "b": {"type": "final"}}}


def invoking(**invoke):
    return machine({"A": {"invoke": invoke, "on": {"x": "B"}}, "B": {"type": "final"}}, context={"n": 0, "id": ""})


def compiled(**invoke):
    return compile(invoking(**invoke))["states"][0]["invoke"][0]


def test_the_invoke_of_a_machine_in_full():
    assert compiled(src="machine:other") == {"id": "A", "machine": "other"}
    assert compiled(
        src="machine:other",
        id="kid",
        input={"a": "n"},
        autoforward=True,
        finalize={"set": {"n": "event.n"}},
        idlocation="id",
    ) == {
        "id": "kid",
        "machine": "other",
        "input": ["obj", ["a", ["data", "n"]]],
        "autoforward": True,
        "finalize": [["set", "n", ["get", ["event"], ["str", "n"]]]],
        "idlocation": "id",
    }


def test_the_machine_may_be_computed():
    assert compiled(src={"expr": "id"}) == {"id": "A", "machine": ["data", "id"]}


def test_a_machine_that_is_brought_along_goes_by_its_short_name():
    definition = machine({"A": {"invoke": {"src": "machine:kid"}, "on": {"x": "A"}}}, machines={"kid": KID})
    assert compile(definition)["states"][0]["invoke"][0]["machine"] == "door.kid"
    assert "machines" not in compile(definition)


def test_embedded_machines_come_with_their_full_names_and_inner_ones_first():
    inner = KID | {"machines": {"small": KID}}
    definition = machine(machines={"one": inner, "two": KID | {"id": "ignored"}})
    found = find_embedded(definition)
    assert list(found) == ["door.one.small", "door.one", "door.two"]
    assert [body["id"] for body in found.values()] == list(found)
    assert [check(body) for body in found.values()] == [[], [], []]
    assert definition["machines"]["two"]["id"] == "ignored"


def test_nothing_is_embedded_where_nothing_can_be():
    for definition in (None, {}, machine(), machine(machines=[]), machine(machines={"a": 1}), {"machines": {"a": KID}}):
        assert find_embedded(definition) == {}


def test_findings_of_embedded_machines_have_the_path_to_them():
    broken = {"initial": "a", "states": {"a": {"on": {"x": "bb"}}, "b": {"type": "final"}}}
    assert found(machine(machines={"kid": broken})) == [
        'SB101 machines.kid.states.a.on.x: no state "bb"; did you mean "b"?'
    ]
    assert found(machine(machines={"a b": KID}))[0].startswith('SB107 machines["a b"].id: the machine name "door.a b"')
    assert found(machine(machines={"kid": 1})) == ["SB104 machines.kid: expected a definition, found a number"]
    assert found(machine(machines=1)) == ["SB104 machines: expected an object of definitions by name, found a number"]


def test_an_embedded_machine_has_data_of_its_own():
    kid = KID | {"context": {"m": 0}, "entry": {"set": {"m": "n"}}}
    (line,) = found(machine(context={"n": 0}, machines={"kid": kid}))
    assert line.startswith('SB102 machines.kid.entry.set.m: no data field "n"')


def test_an_outline_tells_the_full_name():
    definition = machine({"A": {"invoke": {"src": "machine:kid"}, "on": {"x": "A"}}}, machines={"kid": KID})
    assert outline(definition).states[0].invokes[0].machine == "door.kid"
