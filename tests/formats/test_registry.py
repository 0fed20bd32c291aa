"""Which formats there are, how one is guessed, and what is said of the others."""

from __future__ import annotations

import json

import pytest

from machines.engine.errors import DefinitionError
from machines.formats import FORMATS, READERS, WRITERS, dump, format_of, guess, load, read
from tests.cases import for_each
from tests.catalog.samples import door

from .charts import order

pytestmark = pytest.mark.pure


def test_every_format_can_be_read_or_written_and_has_a_name():
    assert set(FORMATS) == set(READERS) | set(WRITERS)
    assert all(FORMATS.values())


@for_each("format", sorted(WRITERS))
def test_every_writer_writes_lines_of_text(format):
    text, findings = dump(order(), format)
    assert text.endswith("\n")
    assert all(not finding.is_error for finding in findings)


@for_each("format", sorted(set(READERS) & set(WRITERS)))
def test_what_can_be_read_and_written_comes_back(format):
    assert set(load(dump(door(), format)[0], format)["states"]) == {"Shut", "Open"}


@pytest.mark.parametrize("format", sorted(set(FORMATS) - set(READERS)))
def test_graphs_cannot_be_read(format):
    with pytest.raises(DefinitionError, match="SB130|cannot be read") as caught:
        load("x", format)
    *most, last = READERS
    expected = f"SB130 definition: {FORMATS[format]} cannot be read; use {', '.join(most)} or {last}"
    assert str(caught.value.findings[0]) == expected


@for_each("format", ["sm", "plantuml", "transitions", "toml", None, 5, "x" * 99])
def test_what_cannot_be_written_is_refused(format):
    with pytest.raises(DefinitionError) as caught:
        dump(door(), format)
    assert caught.value.findings[0].code == "SB130"


def test_read_never_raises_and_keeps_a_draft():
    definition, findings = read(
        '{"id": "m", "initial": "a", "states": {"a": {"on": {"x": {"guard": "is it"}}}}}', "xstate"
    )
    assert definition is not None
    assert findings[0].is_error
    assert read("{", "json")[0] is None
    assert read(b"\xff", "json")[1][0].code == "SB134"
    assert read(5, "json")[1][0].code == "SB134"


@for_each(
    "name, format",
    [
        ("a.json", "json"),
        ("a.yml", "yaml"),
        ("A.SCXML", "scxml"),
        ("a.xstate.json", "xstate"),
        ("machine.ts", "xstate"),
        ("a.sm.json", "sm"),
        ("a.mmd", "mermaid"),
        ("a.gv", "dot"),
        ("a", "json"),
    ],
)
def test_names_tell(name, format):
    assert format_of(name) == format


STATELY = {"id": "m", "initial": "a", "states": {"a": {"entry": {"type": "xstate.log", "params": {}}}}}


@for_each(
    "text, name, format",
    [
        (json.dumps(door()), "", "json"),
        ("id: door", "", "yaml"),
        ("\ufeff <scxml/>", "", "scxml"),
        (json.dumps(STATELY), "", "xstate"),
        (json.dumps(STATELY).encode(), "door.json", "xstate"),
        ("import x;\nexport const m = createMachine({})", "", "xstate"),
        ('{"initial": "a", "map": {}, "current": "", "reason": ""}', "x.json", "sm"),
        ("id: door", "door.json", "json"),
        ("{}", "door.yaml", "yaml"),
        ("stateDiagram-v2\n  [*] --> a", "", "mermaid"),
        ("stateDiagram-v2\n[*] --> a", "door.txt", "mermaid"),
        ("a --> b", "door.mmd", "mermaid"),
        (json.dumps(door(context={"cond": 1})), "", "json"),
    ],
)
def test_looks_tell_where_names_do_not(text, name, format):
    assert guess(text, name) == format


@pytest.mark.parametrize("name", ["xstate", "scxml"])
def test_what_a_team_states_of_its_machine_comes_back(name):
    stated = [{"never": "In('Shut') and In('Open')"}, {"leads": ["In('Shut')", "In('Open')"]}]
    text, _ = dump(door() | {"properties": stated}, name)
    assert load(text, name)["properties"] == stated
