"""YAML is read as plain data, with the words of YAML 1.2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from machines.formats import load
from machines.formats import yaml as reader
from tests.cases import for_each

from .test_json import refusal

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(params=["libyaml", "pure"], autouse=True)
def loader(request, monkeypatch):
    """Every test holds on both parsers."""
    if request.param == "pure":
        monkeypatch.setattr(reader, "LOADER", reader.SlowLoader)
    elif reader.LOADER is reader.SlowLoader:
        pytest.skip("this PyYAML was built without libyaml")


def test_a_definition_reads_the_same_as_in_json():
    definition = json.loads((EXAMPLES / "activation.json").read_text())
    assert load(yaml.safe_dump(definition, sort_keys=False), "yaml") == definition


def test_on_is_a_key_and_not_true():
    assert load("states:\n  yes:\n    on: {no: off}", "yaml") == {"states": {"yes": {"on": {"no": "off"}}}}


@for_each(
    "text, value",
    [
        ("12:30", "12:30"),
        ("2020-01-01", "2020-01-01"),
        ("0x1F", 31),
        ("0o17", 15),
        ("1_000", "1_000"),
        ("-3", -3),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("~", None),
        ("", None),
        ("True", True),
        ("yes", "yes"),
        ("'true'", "true"),
        ("|\n  x\n", "x\n"),
    ],
)
def test_scalars_are_those_of_the_core_schema(text, value):
    assert load(f"a: {text}", "yaml") == {"a": value}


def test_anchors_are_fine_as_long_as_they_stay_small():
    assert load("a: &x {n: 1}\nb: *x\nc: !!str 5", "yaml") == {"a": {"n": 1}, "b": {"n": 1}, "c": "5"}


BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)


@for_each(
    "text, line",
    [
        (BOMB, "SB135 line 1, column 1: aliases repeat"),
        ("a: &a [*a]", "SB135 line 1, column 4: an anchor contains an alias of itself"),
        ("a: &x {q: 1}\nb: {<<: *x}", "SB135 line 2, column 5: merge keys"),
        ("a: !!python/object/apply:os.system ['true']", "SB135 line 1, column 4: the tag"),
        ("a: !!binary aGk=", "SB135 line 1, column 4: the tag"),
        ("a: !mine 5", "SB135 line 1, column 4: the tag"),
        ("--- {a: 1}\n--- {b: 1}", "SB135 line 2, column 1: the text holds several documents"),
        ("a: 1\nb: 2\na: 3", 'SB132 line 3, column 1: the key "a" stands twice'),
        ("1: x", "SB110 line 1, column 1: a key is not text"),
        ("null: x", "SB110 line 1, column 1: a key is not text"),
        ("? {a: b}\n: c", "SB110 line 1, column 3: a key is not text"),
        ("a: .nan", "SB133 line 1, column 4: .nan is not a finite number"),
        ("a: -.inf", "SB133 line 1, column 4: -.inf is not a finite number"),
        ("a: 1e999", "SB133 line 1, column 4: the number is too large"),
        ("a: 99999999999999999999999", "SB133 line 1, column 4: an integer of 2**53"),
        ("a: [", "SB131 line"),
        ("a: *nope", "SB131 line 1, column 4: not YAML: found undefined alias"),
        ("a: '\x01'", "SB131 definition: not YAML"),
        ("a: '\0'", "SB134 line 1, column 5: the text holds NUL"),
        ("", "SB131 definition: the text is empty"),
        ("# nothing", "SB131 definition: the text is empty"),
        ("- a", "SB104 definition: the text holds no object"),
        ("[" * 5000, "SB111 line 1, column 129: nested more than 128 levels"),
        ("- " * 5000 + "x", "SB111 line 1, column 257: nested more than 128 levels"),
    ],
)
def test_a_mistake_has_its_place(text, line):
    assert refusal(text, "yaml")[0].startswith(line)


def test_depth_that_aliases_add_up_is_found():
    chain = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 140))
    assert "nested more than 128 levels" in refusal(chain, "yaml")[0]
