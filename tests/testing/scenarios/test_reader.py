"""The reader of scenario files: what it takes, and what it says of the rest."""

from __future__ import annotations

import json

import pytest
import yaml
from jsonschema import Draft202012Validator

from machines.testing.scenarios import schema
from machines.testing.scenarios.document import describe, format_delay
from machines.testing.scenarios.files import check_names
from machines.testing.scenarios.reader import read_text
from tests.cases import for_each

from .samples import EXAMPLES, compile_all, list_findings, read

pytestmark = pytest.mark.pure

WHOLE = """
machine: order
given: {data: {total: 20}, time: 2026-11-23 12:00}
scenarios:
  - name: one
    description: All that can be written.
    given: {data: {parcel: P}, id: o-1, events: [{event: pay, payload: {amount: 20}}]}
    steps:
      - when: {event: pay, payload: {amount: 1}, to: ledger, actor: ann, groups: [managers]}
        then: {refused: {why: amount, code: SB430}, state: New}
      - when: {after: 1d 2h}
        then: {state: [New, Paid], data: {total: 3}, jobs: [ship], transitions: [New -> Paid], done: false}
      - when: {job: ship, of: order, done: {parcel: P-1}}
        then: {messages: [told, {event: paid, to: ledger, payload: {n: 1}}]}
      - when: {job: ship, failed: {error: away, kind: OSError, retry: true}}
      - when: {job: ship, failed: away}
      - when: {job: ship, failed: true}
      - when: {event: pay}
        then: {refused: true}
      - then: {done: true}
"""


def test_everything_that_can_be_written_is_read():
    (scenario,) = read(WHOLE).scenarios
    whole = yaml.safe_load(WHOLE.replace("2026-11-23 12:00", "'2026-11-23 12:00'"))
    own = whole["scenarios"][0]
    assert scenario.given == {**own["given"], "data": {"total": 20, "parcel": "P"}, "time": "2026-11-23 12:00"}
    assert [(step.when, step.then) for step in scenario.steps] == [
        (one.get("when"), one.get("then")) for one in own["steps"]
    ]
    assert scenario.steps[7].line == 20
    assert [describe(step.when) for step in scenario.steps[:4]] == [
        "event pay to ledger", "after 1d 2h", "job ship done of order", "job ship failed",
    ]  # fmt: skip


@for_each("result", [[], ["P-1", 2], {}, "", None, False, 0.5])
def test_the_result_of_a_job_may_be_any_value(result):
    when = {"job": "ship", "done": result}
    (scenario,) = read(
        json.dumps({"machine": "order", "scenarios": [{"name": "one", "steps": [{"when": when}]}]})
    ).scenarios
    assert scenario.steps[0].when == when


@for_each(
    "text, findings",
    [
        ("machine: [a", ["SB670 2 "]),
        ("a: 1\na: 2", ["SB670 2 "]),
        ("- a", ["SB673 0 "]),
        ("machine: order", ["SB672 0 "]),
        ("machine: order\nscenarios: []", ["SB673 2 scenarios"]),
        ("machine: 3\nscenarios: [{name: a, steps: [{then: {state: A}}]}]", ["SB673 1 machine"]),
    ],
)
def test_a_file_without_scenarios(text, findings):
    assert list_findings(text) == findings


@for_each(
    "step, finding",
    [
        ("{}", "SB672 5 scenarios[0].steps[0]"),
        ("{wen: {after: 1s}, then: {state: A}}", "SB671 5 scenarios[0].steps[0].wen"),
        ("{when: {}}", "SB673 5 scenarios[0].steps[0].when"),
        ("{when: {event: a, after: 1s}}", "SB673 5 scenarios[0].steps[0].when"),
        ("{when: {event: a, done: 1}}", "SB671 5 scenarios[0].steps[0].when.done"),
        ("{when: {event: ''}}", "SB673 5 scenarios[0].steps[0].when.event"),
        ("{when: {event: a, payload: 3}}", "SB673 5 scenarios[0].steps[0].when.payload"),
        ("{when: {after: soon}}", "SB673 5 scenarios[0].steps[0].when.after"),
        ("{when: {after: -1}}", "SB673 5 scenarios[0].steps[0].when.after"),
        ("{when: {job: a}}", "SB672 5 scenarios[0].steps[0].when"),
        ("{when: {job: a, done: 1, failed: x}}", "SB673 5 scenarios[0].steps[0].when"),
        ("{when: {job: a, failed: {eror: x}}}", "SB671 5 scenarios[0].steps[0].when.failed.eror"),
        ("{when: {job: a, failed: 3}}", "SB673 5 scenarios[0].steps[0].when.failed"),
        ("{then: {}}", "SB672 5 scenarios[0].steps[0].then"),
        ("{then: {state: 3}}", "SB673 5 scenarios[0].steps[0].then.state"),
        ("{then: {done: yes}}", "SB673 5 scenarios[0].steps[0].then.done"),
        ("{then: {jobs: ship}}", "SB673 5 scenarios[0].steps[0].then.jobs"),
        ("{then: {messages: [{to: a}]}}", "SB672 5 scenarios[0].steps[0].then.messages[0]"),
        ("{when: {after: 1s}, then: {refused: true}}", "SB673 5 scenarios[0].steps[0].then.refused"),
        ("{then: {refused: x}}", "SB673 5 scenarios[0].steps[0].then.refused"),
    ],
)
def test_a_wrong_step_is_named_with_its_line(step, finding):
    assert list_findings(f"machine: order\nscenarios:\n  - name: a\n    steps:\n      - {step}\n") == [finding]


@for_each("given", ["{data: 3}", "{time: tomorrow}", "{time: 3}", "{events: {event: a}}", "{i: a}", "3"])
def test_a_wrong_start(given):
    text = f"machine: order\ngiven: {given}\nscenarios: [{{name: a, steps: [{{then: {{state: A}}}}]}}]"
    (found,) = list_findings(text)
    assert found.split()[1] == "2"


def test_names_are_unique_and_keys_are_suggested():
    text = "machine: order\nscenarios:\n" + "  - {name: a, steps: [{then: {state: A}}]}\n" * 2
    assert list_findings(text) == ["SB674 4 scenarios[1].name"]
    _, (found,) = read_text("machine: order\nscenarios: [{name: a, steps: [{then: {stat: A}}]}]")
    assert str(found) == (
        "SB671 scenarios[0].steps[0].then.stat: the key 'stat' is not known here; did you mean 'state'?"
    )


def test_names_are_compared_with_the_definition():
    file = read("""
machine: order
scenarios:
  - name: a
    given: {data: {totl: 1}}
    steps:
      - when: {job: shp, done: 1}
        then: {state: Payd, data: {parcl: 1}, transitions: [New -> Pad]}
""")
    found = [str(one) for one in check_names(file, compile_all()["order"].outline)]
    assert found == [
        "SB675 scenarios[0].given.data.totl: order has no data field 'totl'; did you mean 'total'?",
        "SB675 scenarios[0].steps[0].then.state: order has no state 'Payd'; did you mean 'Paid'?",
        "SB675 scenarios[0].steps[0].then.data.parcl: order has no data field 'parcl'; did you mean 'parcel'?",
        "SB675 scenarios[0].steps[0].then.transitions: order has no transition 'New -> Pad'; "
        "did you mean 'New -> Paid'?",
        "SB675 scenarios[0].steps[0].when.job: order has no invoke or handler 'shp'; did you mean 'ship'?",
    ]


def test_a_text_that_is_too_large_or_no_text_is_a_finding():
    assert list_findings("x" * 1_048_577) == ["SB670 0 "]
    _, (found,) = read_text(b"\xff\xfe")
    assert found.code == "SB670"


def test_the_schema_says_what_the_reader_takes():
    Draft202012Validator.check_schema(schema())
    validator = Draft202012Validator(schema())
    documents = [WHOLE, *(path.read_text() for path in sorted((EXAMPLES / "tests").glob("*.yaml")))]
    assert len(documents) == 6
    for text in documents:
        read(text)
        assert [
            str(one) for one in validator.iter_errors(json.loads(json.dumps(yaml.safe_load(text), default=str)))
        ] == []
    wrong = {"machine": "a", "scenarios": [{"name": "a", "steps": [{"when": {"event": "a", "after": "1s"}}]}]}
    assert list(validator.iter_errors(wrong))


KEYWORDS = {
    *("$schema", "$defs", "$ref", "title", "description", "type", "const", "oneOf", "pattern"),
    *("properties", "required", "additionalProperties", "minProperties", "items", "minItems"),
}


def list_keywords(rule):
    """List the keywords of JSON Schema in a rule and in those below it."""
    below = [rule["items"]] if "items" in rule else []
    for one in [*below, *(one for key in ("properties", "$defs") for one in rule.get(key, {}).values())]:
        yield from list_keywords(one)
    for one in rule.get("oneOf", ()):
        yield from list_keywords(one)
    yield from rule


def test_the_schema_uses_no_keyword_that_the_reader_passes_over():
    assert set(list_keywords(schema())) == KEYWORDS
    assert schema()["$defs"]["text"] == {"type": "string", "pattern": r"\S"}


@pytest.mark.parametrize(("ms", "text"), [(0, "0s"), (90_000, "1m 30s"), (86_400_500, "1d 500ms")])
def test_delays_are_written_in_units(ms, text):
    assert format_delay(ms) == text
