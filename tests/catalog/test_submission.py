"""machines.catalog.submissions: text in, a definition with all its findings out, whatever the text is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines import formats
from machines.catalog.submissions import read
from tests.cases import for_each

from .samples import BROKEN, door

DEFINITION = json.dumps(door())


@pytest.mark.parametrize("text", [DEFINITION, f"\n\t {DEFINITION}", DEFINITION.encode(), f"\ufeff{DEFINITION}"])
def test_json_is_known_by_its_brace(text: str | bytes) -> None:
    submission = read(text)
    assert submission.summary in ("no findings", "1 error")
    assert (submission.definition == door()) is not submission.errors


def test_what_does_not_begin_with_a_brace_is_yaml() -> None:
    assert read("id: door\ninitial: A\nstates: {A: {type: final}}\n").definition is not None


def test_the_name_of_a_file_decides_before_its_content() -> None:
    assert [finding.code for finding in read("id: door", name="door.json").errors] == ["SB131"]


def test_a_format_can_be_asked_for() -> None:
    assert read("id: door", format="json").errors
    assert [finding.code for finding in read("graph", format="dot").errors] == ["SB130"]
    assert [finding.code for finding in read("graph LR", format="mermaid").errors] == ["SB131"]


XSTATE = {
    "id": "door",
    "initial": "Shut",
    "states": {"Shut": {"entry": ["ring"], "on": {"open": {"guard": {"type": "g"}}}}},
}


def test_json_that_is_no_definition_of_ours_is_tried_as_a_config_of_xstate() -> None:
    submission = read(json.dumps(XSTATE), name="door.json")
    assert (submission.format, [finding.code for finding in submission.findings]) == ("xstate", ["SB220", "SB140"])
    assert read(json.dumps(XSTATE), format="json").format == "json"
    assert read(json.dumps(BROKEN)).format == "json"


def test_a_draft_comes_with_what_is_wrong_with_it() -> None:
    submission = read(json.dumps(XSTATE), format="xstate")
    assert submission.definition["states"]["Shut"]["on"]["open"] == {"guard": "g"}
    assert submission.errors[0].path == "states.Shut.on.open.guard"


def test_the_one_who_hands_it_in_may_name_it() -> None:
    template = json.dumps({"initial": "a", "map": {"a": ["b"], "b": ["a"]}, "current": "", "reason": ""})
    assert read(template, id="order").definition["id"] == "order"
    assert read(template, id="order").summary == "no findings"
    assert read(template).summary == "1 warning"
    assert read(DEFINITION, id="no name!").errors[0].path == "id"


def test_findings_of_reading_and_of_checking_are_the_same_kind() -> None:
    assert read("{").definition is None
    assert read("{").summary == "1 error"
    assert read(json.dumps(BROKEN)).summary == "2 errors"
    assert read(json.dumps(BROKEN)).definition == BROKEN


MARKUP = {"states": ["a", "b"], "initial": "a", "transitions": [["go", "a", "b"]]}


@for_each(
    "text, name",
    [
        ("@startuml\n[*] --> a\na --> b : go\n@enduml", "door.puml"),
        ("title Door\n[*] --> a", "door.puml"),
        ("a --> b : go\n", "door.puml"),
        (json.dumps(MARKUP), "door.transitions.json"),
        ("states: [a, b]\ninitial: a\ntransitions:\n- [go, a, b]\n", "door.transitions.yaml"),
    ],
)
def test_a_text_of_another_format_is_told_which_formats_are_read(text: str, name: str) -> None:
    read_ones = f"formats that are read: {', '.join(formats.READERS)}"
    assert [finding.hint for finding in read(text, name=name).errors if finding.hint == read_ones] == [read_ones]


@pytest.mark.parametrize("format", ["plantuml", "transitions"])
def test_a_format_that_is_not_read_is_told_which_formats_are(format: str) -> None:
    (finding,) = read("x", format=format).errors
    assert str(finding) == f"SB130 definition: no format '{format}'; there are: {', '.join(formats.READERS)}"


def test_broken_yaml_and_json_of_ours_are_not_told_of_formats() -> None:
    told = [read("id: [", name="door.yaml"), read("{"), read(json.dumps(BROKEN))]
    assert not any("formats that are read" in finding.hint for found in told for finding in found.findings)


@given(st.text(max_size=60) | st.binary(max_size=60))
def test_it_never_raises(text: str | bytes) -> None:
    assert read(text).summary
