"""Templates of the redis-state-machine module become machines with an event for each state."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines.engine import Engine, Refused
from machines.engine.definitions import check, outline
from machines.engine.errors import DefinitionError
from machines.formats import load, read
from tests.cases import for_each

from .charts import HOSTILE


def template(**changes):
    return {
        "initial": "a",
        "map": {"a": ["b", "c"], "b": ["a", "b"], "c": []},
        "current": "",
        "reason": "",
    } | changes


def reading(**changes):
    definition, findings = read(json.dumps(template(**changes)), "sm")
    return definition, [str(finding) for finding in findings]


@pytest.mark.pure
def test_each_state_can_be_asked_for():
    definition, _ = reading()
    assert definition == {
        "id": "machine",
        "initial": "a",
        "states": {
            "a": {"on": {"to.b": "b", "to.c": "c"}},
            "b": {"on": {"to.a": "a", "to.b": {"target": "b", "reenter": True}}},
            "c": {},
        },
    }
    assert not [finding for finding in check(definition) if finding.is_error]


@pytest.mark.pure
def test_names_that_come_to_one_word_are_told_apart():
    names = ["on hold", "on.hold", "on*hold", "x" * 100]
    definition, _ = reading(map={"a": names} | {name: [] for name in names})
    assert list(definition["states"]["a"]["on"])[:3] == ["to.on_hold", "to.on_hold_2", "to.on_hold_3"]
    assert not [finding for finding in check(definition) if finding.is_error]


@pytest.mark.pure
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"current": "b"}, 'SB221 current: "b" is where one machine stands; every instance begins at "a"'),
        ({"current": "a"}, None),
        ({"reason": "because"}, "SB221 reason:"),
        ({"map": {"a": ["b", "z"], "b": []}}, 'SB221 map.a[1]: "z" is no key of the map'),
    ],
)
def test_what_belongs_to_one_machine_is_said(changes, said):
    _, findings = reading(**changes)
    assert [finding for finding in findings if "SB223 id" not in finding] == ([] if said is None else findings[-1:])
    assert said is None or findings[-1].startswith(said)


@pytest.mark.pure
@for_each(
    "text, said",
    [
        ("{}", "SB106 initial"),
        ("[]", "SB104 definition"),
        ("{", "SB131"),
        ('{"initial": "a", "map": {"a": []}, "current": ""}', 'SB106 reason: "reason" is missing'),
        (json.dumps(template(map=[])), "SB104 map"),
        (json.dumps(template(map={"a": "b", "b": []})), "SB104 map.a"),
        (json.dumps(template(map={"a": [5]})), "SB104 map.a[0]"),
        (json.dumps(template(initial=5)), "SB104 initial"),
        (json.dumps(template(current=5)), "SB104 current"),
        (json.dumps(template(state="x")), 'SB105 state: no key "state"'),
    ],
)
def test_what_is_no_template_is_refused_with_its_place(text, said):
    with pytest.raises(DefinitionError) as caught:
        load(text, "sm")
    assert any(str(finding).startswith(said) for finding in caught.value.findings)


names = st.sampled_from([*HOSTILE, "a", "a b", "a.b"])


@pytest.mark.pure
@given(st.dictionaries(names, st.lists(names, max_size=4, unique=True), min_size=1, max_size=6))
def test_any_map_becomes_a_machine_with_the_same_ways(map):
    initial = next(iter(map))
    definition = load(json.dumps(template(map=map, initial=initial)), "sm")
    assert not [finding for finding in check(definition) if finding.is_error]
    ways = {state.name: [transition.target for transition in state.transitions] for state in outline(definition).states}
    assert ways == {name: [target for target in targets if target in map] for name, targets in map.items()}


@pytest.mark.redis
def test_it_goes_where_the_map_leads_and_nowhere_else(engine: Engine):
    engine.publish(load(json.dumps(template()), "sm") | {"id": "order"})
    engine.create("order", "one")
    assert engine.fire("order", "one", "to.b").state == "b"
    with pytest.raises(Refused):
        engine.fire("order", "one", "to.c")
