"""Changes made in the diagram: few edits, nothing else differs, every reference follows, bad ones are refused."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from machines import formats
from machines.catalog.editing.changes import change
from machines.catalog.editing.checking import check
from machines.catalog.editing.edits import apply
from machines.catalog.editing.starters import list_starters
from machines.engine.definitions import compile_definition
from tests.cases import for_each

SHOP = {
    "id": "shop",
    "initial": "Cart",
    "context": {"paid": 0},
    "states": {
        "Cart": {"on": {"pay": [{"target": "Checkout", "guard": "paid < 3"}, "Cart"], "drop": "Gone"}},
        "Checkout": {
            "initial": "Ask",
            "onDone": "Done",
            "states": {
                "Ask": {"on": {"next": ".x", "skip": "Checkout.End"}, "after": {"30s": "End"}, "initial": "x",
                        "states": {"x": {}}},
                "End": {"type": "final"},
                "Back": {"type": "history", "target": "Ask"},
            },
        },
        "Other": {"on": {"done.state.Checkout": "#Checkout", "go": "Back"}},
        "Done": {"type": "final"},
        "Gone": {"on": {"again": {"target": "Cart", "guard": "not In(\"Checkout\") and not In('Ask')"}}},
    },
    "properties": [{"never": "In('Checkout') and paid < 0"}, {"leads": ["Cart", "Done"]}],
}  # fmt: skip
ODD = '{"id":"odd",\n\n\t"initial" :"a", "states":{ "a":{"on":{"go" : "b"} } ,\n "b" : { } }\n}\n\n'
YAML = """\
# Kept.
id: lamp
initial: off
states:
  off:            # dark
    on:
      press: [{target: 'on', guard: "In('off')"}]
  on:
    entry:
      - log: "'lit'"   # says so
    on:
      press: off
"""


def make(text: str, format: str = "json", **wanted: Any) -> str:
    """The text after a change that is not refused."""
    answer = change(text, format, wanted)
    assert "refused" not in answer, answer
    return apply(text, answer["edits"])


def write(definition: dict) -> str:
    return json.dumps(definition, indent=2) + "\n"


def test_a_state_is_added_and_nothing_else_differs():
    assert make(ODD, do="add-state", name="c") == ODD.replace('"b" : { }', '"b" : { }, "c": {}')
    added = make(write(SHOP), do="add-state", name="Lost", within="Checkout")
    assert json.loads(added)["states"]["Checkout"]["states"]["Lost"] == {}
    assert len(added) - len(write(SHOP)) < 40


def test_the_first_state_inside_another_is_its_initial_one():
    made = json.loads(make(ODD, do="add-state", name="c", within="b"))
    assert made["states"]["b"] == {"initial": "c", "states": {"c": {}}}


@pytest.mark.parametrize(
    ("event", "after"),
    [
        ("go", '{"on":{"go" : ["b", "a"]} }'),
        ("stop", '{"on":{"go" : "b", "stop": "a"} }'),
        ("after 30s", '{"on":{"go" : "b"}, "after": {"30s": "a"} }'),
    ],
)
def test_a_transition_is_added(event: str, after: str):
    made = make(ODD, do="add-transition", source="a", target="a", event=event)
    assert made == ODD.replace('{"on":{"go" : "b"} }', after)


def test_a_transition_names_its_target_wherever_that_is():
    made = json.loads(make(write(SHOP), do="add-transition", source="x", target="Gone", event="leave"))
    assert made["states"]["Checkout"]["states"]["Ask"]["states"]["x"] == {"on": {"leave": "Gone"}}


def test_a_state_is_renamed_with_every_reference():
    text = write(SHOP)
    made = make(text, do="rename-state", state="Checkout", name="Till")
    assert "Checkout" not in made
    assert made == text.replace("Checkout", "Till")
    made = make(text, do="rename-state", state="Ask", name='the "question"')
    assert json.loads(made)["states"]["Checkout"]["states"]["Back"]["target"] == 'the "question"'
    assert compile_definition(json.loads(made)).runs


def test_a_state_with_an_id_is_renamed_by_its_id():
    shop = copy.deepcopy(SHOP) | {"initial": "#basket"}
    shop["states"]["Cart"]["id"] = shop["properties"][1]["leads"][0] = "basket"
    made = json.loads(make(write(shop), do="rename-state", state="basket", name="bag"))
    assert (made["initial"], made["states"]["Cart"]["id"], made["properties"][1]["leads"][0]) == ("#bag", "bag", "bag")


def test_yaml_keeps_its_comments_and_quotes():
    made = make(YAML, "yaml", do="rename-state", state="off", name="dark")
    assert made == YAML.replace("off", "dark")
    made = make(YAML, "yaml", do="add-state", name="dim")
    assert made == YAML.rstrip("\n") + "\n  dim: {}\n"
    made = make(YAML, "yaml", do="delete-transition", transition="t1")
    assert made == YAML.replace("    on:\n      press: [{target: 'on', guard: \"In('off')\"}]", "    {}")


def test_a_deleted_state_takes_the_transitions_to_it():
    answer = change(write(SHOP), "json", {"do": "delete-state", "state": "Gone"})
    assert "The transition states.Cart.on.drop to Gone goes too." in answer["breaks"]
    shop = copy.deepcopy(SHOP)
    del shop["states"]["Gone"], shop["states"]["Cart"]["on"]["drop"]
    assert apply(write(SHOP), answer["edits"]) == write(shop)


@for_each("state", ["Checkout", "Cart", "Ask"])
def test_a_state_is_not_deleted_while_something_else_needs_it(state: str):
    answer = change(write(SHOP), "json", {"do": "delete-state", "state": state})
    assert answer["refused"] == "The machine would be invalid."
    assert answer["findings"]


def test_fields_of_a_state_are_read_and_set():
    fields = change(ODD, "json", {"do": "read-fields", "state": "a"})["fields"]
    assert fields == {"entry": "", "exit": "", "invoke": "", "after": ""}
    made = make(ODD, do="set-fields", state="a", fields=fields | {"after": '{"30s": "b"}', "exit": '{"log": "1"}'})
    assert json.loads(made)["states"]["a"] == {"on": {"go": "b"}, "exit": {"log": "1"}, "after": {"30s": "b"}}
    made = make(made, do="set-fields", state="a", fields={"after": '{"1h": "b"}', "exit": ""})
    assert made == ODD.replace('"b"} }', '"b"}, "after": {"1h": "b"} }', 1)


def test_renaming_a_state_keeps_the_end_of_an_invoke_that_has_the_same_id():
    on = {"done.invoke.pay": "wait", "done.invoke.wait.1": "pay", "error.invoke.wait.2": "pay", "done.state.pay": "two"}
    states = {
        "pay": {"initial": "ask", "states": {"ask": {"type": "final"}}, "on": {"go": "two"}},
        "wait": {"invoke": [{"src": "a"}, {"src": "b"}], "on": {"go": "pay"}},
        "two": {"invoke": {"src": "bank", "id": "pay"}, "on": {"go": "wait"}},
    }
    text = write({"id": "x", "initial": "pay", "on": on, "states": states})
    made = json.loads(make(text, do="rename-state", state="pay", name="charge"))
    assert made["on"] == {
        name.replace("state.pay", "state.charge"): to.replace("pay", "charge") for name, to in on.items()
    }
    made = json.loads(make(text, do="rename-state", state="wait", name="hold"))
    assert list(made["on"]) == [name.replace("wait", "hold") for name in on]


def test_a_state_is_moved_with_its_text_and_what_that_changes_is_listed():
    text = write(SHOP)
    answer = change(text, "json", {"do": "move-state", "state": "End", "within": ""})
    assert answer["breaks"] == ["states.Checkout.states.Ask.on.skip: the target Checkout.End becomes End."]
    shop = copy.deepcopy(SHOP)
    shop["states"]["End"] = shop["states"]["Checkout"]["states"].pop("End")
    shop["states"]["Checkout"]["states"]["Ask"]["on"]["skip"] = "End"
    assert apply(text, answer["edits"]) == write(shop)
    answer = change(text, "json", {"do": "move-state", "state": "x", "within": "Other"})
    assert "Transitions of Ask no longer hold in x: next, skip, 30s." in answer["breaks"]
    assert "Transitions of Other also hold in x: done.state.Checkout, go." in answer["breaks"]
    shop = copy.deepcopy(SHOP)
    del shop["states"]["Checkout"]["states"]["Ask"]["states"], shop["states"]["Checkout"]["states"]["Ask"]["initial"]
    shop["states"]["Checkout"]["states"]["Ask"]["on"]["next"] = "x"
    shop["states"]["Other"] |= {"initial": "x", "states": {"x": {}}}
    assert json.loads(apply(text, answer["edits"])) == shop


def test_a_moved_state_of_yaml_takes_its_comments_and_gets_the_margin_of_its_new_place():
    text = YAML + "  # of three\n  three:   # odd\n    initial: x\n    states:\n      x: {} # ex\n  four: {}\n"
    assert make(text, "yaml", do="move-state", state="three", within="four") == YAML + (
        '  four:\n    initial: "three"\n    states:\n'
        "      # of three\n      three:   # odd\n        initial: x\n        states:\n          x: {} # ex\n"
    )
    assert make(text, "yaml", do="move-state", state="x", within="") == YAML + (
        "  # of three\n  three:   # odd\n    {}\n  four: {}\n  x: {} # ex\n"
    )


REFUSED = {
    "a state into itself": {"do": "move-state", "state": "Checkout", "within": "x"},
    "a state where it is": {"do": "move-state", "state": "Ask", "within": "Checkout"},
    "the initial state to somewhere else": {"do": "move-state", "state": "Ask", "within": "Other"},
    "a state into a final one": {"do": "move-state", "state": "x", "within": "Done"},
    "a name of 300 characters": {"do": "add-state", "name": "x" * 300},
    "a name that is there": {"do": "add-state", "name": "Cart"},
    "a state that is not there": {"do": "delete-state", "state": "Nowhere"},
    "a state inside a final one": {"do": "add-state", "name": "y", "within": "Done"},
    "a transition from a final state": {"do": "add-transition", "source": "Done", "target": "Cart", "event": "go"},
    "no event": {"do": "add-transition", "source": "Cart", "target": "Cart", "event": " "},
    "an event with a space": {"do": "add-transition", "source": "Cart", "target": "Cart", "event": "a b"},
    "a duration that is none": {"do": "add-transition", "source": "Cart", "target": "Cart", "event": "after soon"},
    "half a field": {"do": "set-fields", "state": "Cart", "fields": {"entry": "[{"}},
    "a field of the wrong kind": {"do": "set-fields", "state": "Cart", "fields": {"entry": '{"set": 1}'}},
    "no operation": {"do": "explode"},
    "nothing": {},
}


@for_each("name", REFUSED)
def test_an_invalid_change_is_refused(name: str):
    answer = change(write(SHOP), "json", REFUSED[name])
    assert answer["refused"]
    assert "edits" not in answer


def test_a_text_with_errors_is_not_drawn_upon():
    assert "Correct the errors first" in change('{"id": "x",', "json", {"do": "add-state", "name": "y"})["refused"]


def test_right_to_left_names_are_names():
    made = make(write(SHOP), do="rename-state", state="Gone", name="سلة")
    assert json.loads(made)["states"]["Cart"]["on"]["drop"] == "سلة"


def test_an_edit_of_what_an_anchor_repeats_is_refused():
    text = "id: a\ninitial: b\nstates:\n  b: {on: &one {go: c}}\n  c: {on: *one}\n"
    answer = change(text, "yaml", {"do": "rename-state", "state": "c", "name": "d"})
    assert "This cannot be written" in answer["refused"]


def test_offsets_of_an_answer_are_those_of_javascript():
    text = json.dumps({"id": "a", "description": "🚦", "initial": "b", "states": {"b": {}}}, ensure_ascii=False)
    (edit,) = check(text, wanted={"do": "add-state", "name": "c"})["change"]["edits"]
    units = text.encode("utf-16-le")
    made = units[: 2 * edit[0]].decode("utf-16-le") + edit[2] + units[2 * edit[1] :].decode("utf-16-le")
    assert json.loads(made)["states"] == {"b": {}, "c": {}}


@pytest.mark.hostile
@for_each("format", ["json", "yaml"])
@for_each("starter", ["order", "approval", "subscription", "parallel"])
def test_any_change_of_a_starter_is_exact_or_refused(starter: str, format: str):
    """The result reads as it should, and every line that stays is one of the lines before."""
    text, _ = formats.dump(json.loads(list_starters()[starter].text), format)
    dice = random.Random(7)
    made = 0
    for _ in range(60):
        states = check(text, draw=False)["names"]["states"]
        source, target = dice.choice(states), dice.choice(states)
        wanted = dice.choice(
            [
                {"do": "add-state", "name": f"New {dice.randrange(99)}", "within": dice.choice(["", source])},
                {"do": "add-transition", "source": source, "target": target, "event": f"ev{dice.randrange(9)}"},
                {"do": "rename-state", "state": source, "name": f"{source}{dice.randrange(9)}"},
                {"do": "delete-state", "state": source},
                {"do": "move-state", "state": source, "within": dice.choice(["", target])},
            ]
        )
        answer = change(text, format, wanted)
        if "refused" in answer:
            assert "edits" not in answer
            continue
        after = apply(text, answer["edits"])
        assert check(after, draw=False)["errors"] == 0
        if wanted["do"] in ("add-state", "add-transition"):
            assert sum(end - start for start, end, _ in answer["edits"]) <= 2
        if wanted["do"] == "rename-state":
            assert len(after.split("\n")) == len(text.split("\n"))
        text, made = after, made + 1
    assert made > 15
