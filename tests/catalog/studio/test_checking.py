"""One look at a text: findings with ranges and fixes that mend, names, parts of the diagram, other formats."""

from __future__ import annotations

import json
import re

import pytest

from machines import formats
from machines.catalog.editing.checking import FOLDED, check
from machines.catalog.editing.starters import list_starters
from tests.cases import for_each

BASE = {
    "id": "lamp",
    "initial": "off",
    "context": {"count": 0},
    "states": {
        "off": {"on": {"press": [{"target": "on", "guard": "count < 3"}, {"target": "off"}]}},
        "on": {"on": {"press": "off"}},
    },
}


def text_of(change, format: str = "json") -> str:
    definition = json.loads(json.dumps(BASE))
    change(definition)
    return formats.dump(definition, format)[0]


def apply(text: str, fix: dict) -> str:
    for start, end, said in sorted(fix["changes"], reverse=True):
        text = text[:start] + said + text[end:]
    return text


def set_guard(text: str):
    return lambda d: d["states"]["off"]["on"]["press"][0].update(guard=text)


MISTAKES = {
    "target": (lambda d: d["states"]["on"]["on"].update(press="of"), "SB101", "of", "Replace by off"),
    "a state that is missing": (
        lambda d: d["states"]["on"]["on"].update(press="dim"),
        "SB101",
        "dim",
        "Add the state dim",
    ),
    "a field": (set_guard("cuont < 3"), "SB102", "cuont", "Replace by count"),
    "a field that is missing": (set_guard("count < most"), "SB102", "most", "Declare the field most in context"),
    "a function": (set_guard("lenn('a') < 3"), "SB120", "lenn", "Replace by len"),
    "a key": (lambda d: d["states"]["on"].update(entri=[]), "SB105", "entri", "Replace by entry"),
    "initial": (lambda d: d.pop("initial"), "SB106", None, "Add initial: off"),
    "a trap": (lambda d: d["states"]["on"].pop("on"), "SB202", None, "Make on a final state"),
}


@for_each("format", ["json", "yaml"])
@for_each("name", MISTAKES)
def test_a_fix_mends_its_finding(name: str, format: str):
    change, code, word, label = MISTAKES[name]
    text = text_of(change, format)
    (finding,) = [one for one in check(text)["findings"] if one["code"] == code]
    if word:
        assert text[slice(*finding["range"])].strip("\"'") == word
    (fix,) = [one for one in finding["fixes"] if one["label"] == label]
    mended = check(apply(text, fix))
    assert (mended["format"], [one for one in mended["findings"] if one["code"] == code]) == (format, [])
    assert mended["errors"] == 0


@pytest.mark.parametrize(
    ("text", "label"), [('{"id": "a",}', "Remove the comma"), ('{"id": "a" "initial": "b"}', "Add a comma")]
)
def test_commas_of_json_are_mended(text: str, label: str):
    (finding,) = check(text)["findings"]
    (fix,) = finding["fixes"]
    assert fix["label"] == label
    json.loads(apply(text, fix))


def test_a_field_is_declared_where_there_is_no_context_yet():
    text = text_of(lambda d: d.pop("context"))
    (finding,) = check(text)["findings"]
    assert check(apply(text, finding["fixes"][-1]))["errors"] == 0


@pytest.mark.parametrize("format", ["json", "yaml"])
def test_parts_of_the_diagram_lead_to_their_text(format: str):
    text = text_of(lambda d: None, format)
    answer = check(text)
    for id in answer["parts"]:
        assert f'id="{id}"' in answer["svg"]
    start, end = answer["parts"]["state-2"]
    assert re.sub(r"[\"']", "", text[start:end]).startswith("on:")
    lines = [text[slice(*place)] for id, place in answer["parts"].items() if id.startswith("edge-")]
    assert len(lines) == 3
    assert "count < 3" in lines[0]


def test_names_are_there_while_the_text_cannot_be_read():
    text = text_of(lambda d: d.update(events={"press": {"payload": {"type": "object", "properties": {"hard": {}}}}}))
    whole, half = check(text)["names"], check(text[:-20])["names"]
    assert whole["states"] == half["states"] == ["off", "on"]
    assert whole["fields"] == half["fields"] == ["count"]
    assert half["payloads"] == {"press": ["hard"]}


def test_a_drawing_that_was_seen_is_not_sent_again():
    text = text_of(lambda d: None)
    first = check(text)
    assert first["svg"].startswith("<svg")
    again = check(text.replace("  ", " "), seen=first["drawing"])
    assert again["drawing"] == first["drawing"]
    assert "svg" not in again
    assert "svg" not in check(text, draw=False)


def test_what_has_errors_is_not_drawn_and_keeps_its_findings():
    answer = check(text_of(lambda d: d.update(initial="nowhere")))
    assert (answer["drawing"], answer["parts"], answer["errors"]) == ("", {}, 1)


def test_a_large_machine_is_drawn_by_its_top_level():
    inside = {f"s{n}": {"on": {"go": f"s{n + 1}" if n < FOLDED else "s0"}} for n in range(FOLDED + 1)}
    inner = {"id": "many", "initial": "all", "states": {"all": {"initial": "s0", "states": inside}}}
    answer = check(json.dumps(inner))
    assert answer["folded"]
    assert 'data-state="s7"' not in answer["svg"]


SCXML = (
    '<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" name="d" initial="a"><state id="a">'
    '<transition event="go" target="b"/></state><final id="b"/></scxml>'
)
XSTATE = "createMachine({ id: 'd', initial: 'a', states: { a: { on: { go: 'b' } }, b: { type: 'final' } } })"
MERMAID = "stateDiagram-v2\n  [*] --> a\n  a --> b: go\n  b --> [*]\n"
BLOB = '{"initial":"a","current":"","reason":"","map":{"a":["b"],"b":[]}}'


@for_each("text, format", [(SCXML, "scxml"), (XSTATE, "xstate"), (MERMAID, "mermaid"), (BLOB, "sm")])
@for_each("wanted", ["json", "yaml"])
def test_other_formats_are_recognised_drawn_and_converted(text: str, format: str, wanted: str):
    answer = check(text, write=wanted)
    assert (answer["format"], answer["parts"]) == (format, {})
    assert answer["svg"].startswith("<svg")
    written = check(answer["written"])
    assert written["format"] == wanted
    assert set(written["names"]["states"]) == {"a", "b"}


def test_formatting_keeps_comments_by_refusing():
    yaml = "id: lamp # mine\ninitial: off\nstates: {off: {}}\n"
    assert "written" not in check(yaml, write="yaml")
    assert "comments" in check(yaml, write="yaml")["refused"]
    assert "refused" in check('{"id": ', write="json")


@for_each("name", list_starters())
def test_templates_have_no_findings(name: str):
    answer = check(list_starters()[name].text)
    assert answer["findings"] == []
    assert answer["svg"]


@for_each(
    "text",
    ["", " ", "hello", "[]", "null", "3", '{"states": 3}', "a: &x [*x]", "\x00", "<scxml", "{" * 5000, "🚦" * 1000],
)
def test_anything_has_an_answer_with_ranges_inside_of_the_text(text: str):
    answer = check(text)
    length = len(text.encode("utf-16-le")) // 2
    assert all(0 <= start <= end <= length for one in answer["findings"] for start, end in [one["range"]])
    assert json.dumps(answer)
