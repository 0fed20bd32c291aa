"""All that is wrong with a plan is found at once, each with its code, its place and what would be right."""

from __future__ import annotations

import copy
import json

import pytest

from machines.engine import BadInput, MigrationPlan, PlanError
from machines.engine.definitions import render
from machines.engine.versions.planning.document import PlanOptions
from machines.engine.versions.planning.planner import check_plan, make_plan
from tests.cases import for_each

from ..content import ORDER, change, read, rename

PARALLEL = {
    "id": "order",
    "initial": "Work",
    "states": {
        "Work": {
            "type": "parallel",
            "states": {
                "left": {"initial": "a1", "states": {"a1": {"on": {"a": "a2"}}, "a2": {}}},
                "right": {"initial": "b1", "states": {"b1": {"on": {"b": "b2"}}, "b2": {}}},
            },
        }
    },
}
FLAT = {
    "id": "order",
    "initial": "a1",
    "states": {"a1": {"on": {"a": "a2"}}, "a2": {"on": {"b": "b1"}}, "b1": {"on": {"b": "b2"}}, "b2": {}},
}


def find(definition=ORDER, *, old=ORDER, **arguments):
    """Return (code, path) -> finding of a plan that cannot be made."""
    with pytest.raises(PlanError) as caught:
        make_plan("order", read(2, definition), [read(1, old)], **arguments)
    assert isinstance(caught.value, BadInput)
    assert caught.value.code == "SB600"
    return {(one.code, one.path): one for one in caught.value.findings}


def warn(definition=ORDER, *, old=ORDER, **arguments):
    made = make_plan("order", read(2, definition), [read(1, old)], **arguments)
    assert all(one.severity == "warning" for one in made.findings)
    return {(one.code, one.path): one for one in made.findings}


def test_all_faults_are_found_at_once():
    found = find(
        change(context={"total": 0, "when": ""}),
        states={"Payin": "Paid", "Paying": "Payd", "New": "past", "Held": ["New", "Paid"], "Done": 7, "past": "Paid"},
        data={"totl": "1", "total": "totl + 1", "when": "1 +"},
        unmapped="drop",
        options=PlanOptions(timers="never", actions=("enter",), keep_undo="soon"),
    )
    assert set(found) == {
        ("SB600", "unmapped"), ("SB600", "timers"), ("SB600", "actions"), ("SB600", "keep_undo"),
        ("SB600", "states.Done"), ("SB604", "data.totl"), ("SB602", "states.Payin"), ("SB602", "states.Paying"),
        ("SB602", "states.New"), ("SB602", "states.past"), ("SB603", "states.Held"), ("SB605", "data.total"),
        ("SB605", "data.when"),
    }  # fmt: skip
    assert found["SB602", "states.Payin"].hint == 'did you mean "Paying"?'
    assert found["SB602", "states.Paying"].hint == 'did you mean "Paid"?'
    assert found["SB602", "states.New"].hint == 'name the state around it, "Shipping", or one inside'
    assert found["SB604", "data.totl"].hint == 'did you mean "total"?'
    assert found["SB605", "data.total"].message == 'version 1 has no data field "totl", at character 1 of "totl + 1"'
    assert found["SB605", "data.total"].hint == 'did you mean "total"?'


@for_each(
    "arguments",
    [
        {"states": [1]},
        {"data": "total"},
        {"states": {1: "New"}},
        {"states": {"New": []}},
        {"data": {1: "1"}},
        {"data": {"total": object()}},
        {"data": {"total": "\ud800"}},
        {"states": {"New": "\ud800"}},
    ],
)
def test_arguments_of_other_types_are_findings(arguments):
    assert {code for code, _ in find(**arguments)} & {"SB600", "SB602", "SB604", "SB605"}


def test_the_error_has_the_plan_as_far_as_it_could_be_made():
    with pytest.raises(PlanError) as caught:
        make_plan("order", read(2, rename(ORDER, "Paying", "Charging")), [read(1, ORDER)], states={"Payin": "Charging"})
    assert caught.value.plan.sources[0].suggestions[0][:2] == ("Paying", "Charging")
    assert caught.value.facts()["findings"][0]["code"] == "SB602"


def test_nothing_to_move():
    with pytest.raises(PlanError) as caught:
        make_plan("order", read(2, ORDER), [])
    assert [one.code for one in caught.value.findings] == ["SB601"]
    with pytest.raises(PlanError) as caught:
        make_plan("order", read(2, ORDER), [read(2, ORDER)])
    assert [one.code for one in caught.value.findings] == ["SB601"]


def test_regions_that_would_always_exclude_each_other():
    found = find(FLAT, old=PARALLEL)
    assert set(found) == {("SB603", "states.Work")}
    assert "every configuration of" in found["SB603", "states.Work"].message
    assert warn(FLAT, old=PARALLEL, states={"right": None})["SB607", "states.b1"]
    whole = make_plan("order", read(2, FLAT), [read(1, PARALLEL)], states=dict.fromkeys(["a1", "a2", "b1", "b2"], "a2"))
    assert not whole.findings


def test_regions_that_sometimes_exclude_each_other():
    states = {"a1": "a1", "b1": "a1", "a2": "b1", "b2": "b1"}
    found = warn(FLAT, old=PARALLEL, states=states)
    assert "2 of 4 configurations" in found["SB608", "states.Work"].message
    assert "a1, b2 in" in found["SB608", "states.Work"].message


def test_living_and_final_states():
    living = change(states__Done={"on": {"again": "New"}})
    assert "finished instances are refused" in warn(living)["SB608", "states.Done"].message
    ended = change(states__Held={"type": "final"})
    assert "may end" in warn(ended)["SB608", "states.Held"].message


def test_conversions_that_can_fail():
    found = warn(change(context={"total": "", "note": 0, "paid": False, "code": 7.5}))
    assert set(found) == {("SB608", "data.note")}
    assert found["SB608", "data.note"].hint == 'give an expression for it: data={"note": ...}'


def test_expressions_that_never_or_sometimes_fit():
    assert "the value string" in find(data={"total": "upper(note)"})["SB605", "data.total"].message
    assert '"+" does not work' in find(data={"total": "note + 1"})["SB605", "data.total"].message
    assert warn(data={"total": "paid and total"})["SB608", "data.total"]


def test_an_expression_has_no_event():
    assert "event.amount means nothing" in find(data={"total": "event.amount"})["SB605", "data.total"].message
    assert find(data={"total": "1 if In('Payd') else 0"})["SB605", "data.total"].hint == 'did you mean "Paid"?'


def test_events_that_may_wait_for_an_instance():
    changed = change(states__New__on={"buy": "Paying", "cancel": "Cancelled"})
    assert '"pay"' in warn(changed)["SB609", "versions[1]"].message
    changed["states"]["New"]["on"]["*"] = "New"
    assert not warn(changed)


@for_each(
    "path, value, where",
    [
        ("to", "2", "to"),
        ("machine", "", "machine"),
        ("unmapped", "drop", "unmapped"),
        ("format", 2, "format"),
        ("extra", 1, "extra"),
        ("sources", [], "sources"),
        ("options", {}, "options.timers"),
        ("sources.0.states.New", "Paid", "sources[0].states.New"),
        ("sources.0.states.New", [], "sources[0].states.New"),
        ("sources.0.digest", "x", "sources[0].digest"),
        ("sources.0.data.total", "1 +", "sources[0].data.total"),
        ("sources.0.timers.one", ["a"], "sources[0].timers.one"),
        ("sources.0.back", 1, "sources[0].back"),
        ("sources.0.back.to", 9, "sources[0].back"),
        ("sources.0.version", True, "sources[0].version"),
        ("id", "abcdefabcdef", "id"),
        ("inverse_of", "x" * 100, "inverse_of"),
        ("sources.0.states.New", ["x" * 501], "sources[0].states.New[0]"),
        ("sources.0.reasons", {"x" * 501: "why"}, render(("sources", 0, "reasons", "x" * 501))),
        ("sources.0.timers.one", ["", "New"], "sources[0].timers.one[0]"),
        *[(f"sources.0.{part}.one", "", f"sources[0].{part}.one") for part in ("fields", "invokes", "histories")],
        *[(f"sources.0.{part}", [""], f"sources[0].{part}[0]") for part in ("added", "removed", "unmapped_states")],
    ],
)
def test_a_stored_plan_is_not_trusted(path, value, where):
    found = json.loads(json.dumps(make_plan("order", read(2, ORDER), [read(1, ORDER)]).as_dict()))
    *way, last = path.split(".")
    at = found
    for key in way:
        at = at[int(key) if isinstance(at, list) else key]
    at[last] = value
    with pytest.raises(PlanError) as caught:
        MigrationPlan.from_dict(found)
    assert {one.code for one in caught.value.findings} == {"SB600"}
    assert where in [one.path for one in caught.value.findings]


@for_each("found", [None, [], "plan", {}, {"sources": {}}, {"sources": [None]}])
def test_what_is_no_plan_at_all(found):
    with pytest.raises(PlanError):
        MigrationPlan.from_dict(found)


def test_a_stale_plan_is_noticed():
    made = make_plan("order", read(2, ORDER), [read(1, ORDER)])
    versions = {1: read(1, ORDER), 2: read(2, ORDER)}
    assert check_plan(made, versions) == []
    other = read(2, ORDER)
    object.__setattr__(other, "digest", "ffffffffffff")
    assert [one.code for one in check_plan(made, versions | {2: other})] == ["SB606"]
    assert [one.code for one in check_plan(made, {1: versions[1]})] == ["SB606"]


@for_each(
    "part, value, code",
    [
        ("states", {"Nowhere": ["New"]}, "SB602"),
        ("states", {"New": ["Nowhere"]}, "SB602"),
        ("states", {"New": ["New", "Paid"]}, "SB603"),
        ("histories", {"past": "New"}, "SB602"),
        ("timers", {"after.t3": ["after.t99", "New"]}, "SB602"),
        ("invokes", {"Paying": "nothing"}, "SB602"),
        ("fields", {"total": "nothing"}, "SB604"),
        ("data", {"nothing": "1"}, "SB604"),
        ("data", {"total": "nothing"}, "SB605"),
    ],
)
def test_a_stored_plan_must_fit_its_versions(part, value, code):
    found = copy.deepcopy(make_plan("order", read(2, ORDER), [read(1, ORDER)]).as_dict())
    del found["id"]
    found["sources"][0][part] = value
    findings = check_plan(MigrationPlan.from_dict(found), {1: read(1, ORDER), 2: read(2, ORDER)})
    assert code in [one.code for one in findings]


@for_each("text", ["\ud800", "a\0b"])
@for_each("part", ["reasons", "suggestions", "unmapped_states", "findings"])
def test_what_explains_a_stored_plan_is_text_that_stores_and_pages_take(part, text):
    found = copy.deepcopy(make_plan("order", read(2, ORDER), [read(1, ORDER)]).as_dict())
    finding = {"code": "SB607", "path": "", "message": text, "hint": "", "severity": "warning"}
    value = {"reasons": {"New": text}, "suggestions": [["New", "New", 1, text]], "unmapped_states": [text]}.get(part)
    place = found if part == "findings" else found["sources"][0]
    place[part] = [finding] if part == "findings" else value
    with pytest.raises(PlanError) as caught:
        MigrationPlan.from_dict(found)
    assert {one.code for one in caught.value.findings} == {"SB600"}
