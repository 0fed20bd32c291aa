"""Differences of two versions: what came, went, changed or was renamed, and what it means for instances."""

from __future__ import annotations

import json
from pathlib import Path

from machines import diagrams
from machines.engine.versions.comparison.differ import compare_versions
from machines.engine.versions.records import CHANGES, COMPATIBLE
from machines.engine.versions.records import NEEDS_MAPPING as MAPPING
from tests.cases import for_each

from ..content import ORDER, change, read, rename

EXAMPLES = Path(__file__).parents[4] / "examples"


def diff(definition, old=ORDER):
    return compare_versions("order", read(1, old), read(2, definition))


def one(definition, old=ORDER):
    (found,) = diff(definition, old).changes
    return found


def test_equal_definitions_have_no_difference():
    found = diff(change())
    assert (found.changes, found.text, found.verdict) == ([], "", "compatible")
    assert found.old_parts == found.new_parts == {"states": {}, "transitions": {}, "queues": {}}


def test_a_renamed_state_needs_a_mapping_and_brings_nothing_else():
    old = change(states__Paying__invoke__id="charge")
    found = one(rename(old, "Paying", "Charging"), old)
    assert (found.kind, found.verb, found.before, found.after) == ("state", "renamed", "Paying", "Charging")
    assert (found.verdict, found.match, found.path) == ("needs a mapping", "shape", "states.Charging")
    assert "invokes the same: handler charge" in found.reason


def test_the_draft_of_the_demo_renames_a_state():
    old, new = (json.loads((EXAMPLES / name).read_text("utf-8")) for name in ("delivery.json", "drafts/delivery.json"))
    changes = compare_versions("delivery", read(1, old), read(2, new)).changes
    renamed = [(one.before, one.after) for one in changes if (one.kind, one.verb) == ("state", "renamed")]
    assert renamed == [("Missing", "Back-ordered")]


def test_an_invoke_with_a_default_id_follows_its_state():
    found = diff(rename(ORDER, "Paying", "Charging"))
    assert [(c.kind, c.verb, c.verdict) for c in found.changes] == [
        ("state", "renamed", "needs a mapping"),
        ("invoke", "renamed", "compatible"),
    ]


@for_each("parts, kind, verb, path, verdict", [
        ({"states__Held": None, "states__Shipping__on": {}}, "state", "removed", "states.Held", MAPPING),
        ({"states__Lost": {"on": {"found": "New"}}}, "state", "added", "states.Lost", COMPATIBLE),
        ({"states__Held__type": "final", "states__Held__on": None}, "state", "changed", "states.Held.type", MAPPING),
        ({"states__Held__description": "x"}, "state", "changed", "states.Held.description", COMPATIBLE),
        ({"states__Held__tags": ["x"]}, "state", "changed", "states.Held.tags", COMPATIBLE),
        ({"states__Held__sla": "1h"}, "state", "changed", "states.Held.sla", CHANGES),
        ({"states__Shipping__initial": "moving"}, "state", "changed", "states.Shipping.initial", CHANGES),
        ({"states__Held__entry": [{"set": {"note": "'x'"}}]}, "action", "added", "states.Held.entry", CHANGES),
        ({"states__Paid__on__cancel": "Cancelled"}, "transition", "added", "states.Paid.on.cancel", COMPATIBLE),
        ({"states__New__on__cancel": None}, "transition", "removed", "states.New.on.cancel", CHANGES),
        ({"states__New__on__cancel": "Held"}, "transition", "changed", "states.New.on.cancel", CHANGES),
        (
            {"states__New__on__cancel": {"target": "Cancelled", "guard": "total > 1"}},
            "guard", "added", "states.New.on.cancel.guard", CHANGES,
        ),
        (
            {"states__New__on__cancel": {"target": "Cancelled", "actions": [{"set": {"note": "'x'"}}]}},
            "action", "added", "states.New.on.cancel.actions", CHANGES,
        ),
        (
            {"states__New__on__cancel": {"target": "Cancelled", "description": "x"}},
            "transition", "changed", "states.New.on.cancel.description", COMPATIBLE,
        ),
        ({"states__New__after": {"2h": "Cancelled"}}, "timer", "changed", 'states.New.after["2 h"]', CHANGES),
        ({"states__New__after": None}, "timer", "removed", 'states.New.after["1 h"]', CHANGES),
        ({"states__Paid__after": {"1m": "Held"}}, "timer", "added", 'states.Paid.after["1 m"]', CHANGES),
        (
            {"states__Held__always": [{"target": "Paid", "guard": "paid"}]},
            "transition", "added", "states.Held.always", CHANGES,
        ),
        ({"states__Paid__invoke": {"src": "charge"}}, "invoke", "added", "states.Paid.invoke", CHANGES),
        ({"states__Paying__invoke__input": {"n": "total"}}, "invoke", "changed", "states.Paying.invoke", CHANGES),
        ({"states__Paying__invoke__id": "pay"}, "invoke", "renamed", "states.Paying.invoke", COMPATIBLE),
        ({"context__new": 1}, "data", "added", "context.new", COMPATIBLE),
        ({"context__note": None}, "data", "removed", "context.note", MAPPING),
        ({"context__total": 0.5}, "data", "changed", "context.total", COMPATIBLE),
        ({"context__note": 1}, "data", "changed", "context.note", MAPPING),
        ({"context__total": 5}, "data", "changed", "context.total", COMPATIBLE),
        ({"queues": {"charge": {"concurrency": 2}}}, "queue", "changed", "queues.charge", CHANGES),
        ({"queues": {"mail": {"rate": "5/s"}}}, "queue", "added", "queues.mail", CHANGES),
        ({"description": "x"}, "machine", "added", "description", COMPATIBLE),
        ({"history": 5}, "machine", "added", "history", COMPATIBLE),
        ({"initial": "Paid"}, "machine", "changed", "initial", COMPATIBLE),
        ({"accepts": {"from": ["other"]}}, "machine", "added", "accepts", CHANGES),
        ({"events": {"pay": {"payload": {"text": "string"}}}}, "machine", "added", "events.pay", COMPATIBLE),
    ])  # fmt: skip
def test_each_kind_of_change_has_its_verdict(parts, kind, verb, path, verdict):
    found = diff(change(**parts)).changes
    assert (kind, verb, path, verdict) in [(one.kind, one.verb, one.path, one.verdict) for one in found]
    assert len(found) == (2 if "states__Held__on" in parts or "states__Held" in parts else 1)
    assert all(one.reason for one in found)


def test_a_field_under_another_name_is_a_renamed_one():
    changed = change(context={"total": 0, "remark": "", "paid": False, "code": 7})
    found = one(changed)
    assert (found.kind, found.verb, found.before, found.after) == ("data", "renamed", "note", "remark")
    assert 'data={"remark": "note"}' in found.reason


def test_the_order_of_transitions_matters():
    first, second = {"target": "Paid", "guard": "paid"}, {"target": "Held", "guard": "total > 1"}
    found = one(change(states__New__on__pay=[second, first]), change(states__New__on__pay=[first, second]))
    assert (found.kind, found.verb, found.verdict) == ("transition", "changed", "changes what runs")


def test_the_same_guard_written_in_another_way_is_compatible():
    old = change(states__New__on__pay={"target": "Paid", "guard": "total>1"})
    new = change(states__New__on__pay={"target": "Paid", "guard": "total > 1"})
    assert (one(new, old).kind, one(new, old).verdict) == ("guard", "compatible")


def test_a_state_that_moves_into_another_changes_what_runs():
    changed = change()
    changed["states"]["Shipping"]["states"]["Held"] = changed["states"].pop("Held")
    found = diff(changed).changes
    assert ("state", "changed", "at the top", "in Shipping") in [(c.kind, c.verb, c.before, c.after) for c in found]


def test_diagrams_get_their_parts():
    changed = change(states__New__on__cancel="Held", states__Lost={"on": {"found": "New"}}, states__Paid=None)
    changed["states"]["Paying"]["invoke"]["onDone"] = "Shipping"
    old, new = read(1, ORDER), read(2, changed)
    found = compare_versions("order", old, new)
    assert found.old_parts["states"] == {"Paid": "removed"}
    assert found.new_parts["states"] == {"Lost": "added"}
    assert "removed" in found.old_parts["transitions"].values()
    assert sorted(found.new_parts["transitions"].values()) == ["added", "changed", "changed"]
    drawn = diagrams.list_changed_parts(diagrams.index(new.outline), found.new_parts)
    svg = diagrams.draw(new.outline)
    assert sorted(drawn.values()) == ["added", "added", "changed", "changed"]
    assert all(f'"{id}"' in svg for id in drawn)


def test_the_text_is_a_unified_diff_of_the_json():
    lines = diff(change(states__Held__description="waits")).text.splitlines()
    assert lines[:2] == ["--- order v1", "+++ order v2"]
    assert '+      "description": "waits"' in lines


def test_a_diff_is_plain_data():
    found = diff(change(states__Held__description="waits", context__note=None))
    told = json.loads(json.dumps(found.as_dict()))
    assert told["verdict"] == "needs a mapping"
    assert told["counts"] == {"compatible": 1, "needs a mapping": 1, "changes what runs": 0}
    assert told["changes"][1]["new_part"] == ["states", "Held"]


def test_what_changes_in_one_direction_changes_in_the_other():
    changed = change(states__Paid=None, context__new=1, description="x", states__Held__sla="1h")
    changed["states"]["Paying"]["invoke"]["onDone"] = "Shipping"
    turn = {"added": "removed", "removed": "added"}
    there = {(c.kind, c.verb, c.before, c.after) for c in diff(changed).changes}
    back = {(c.kind, turn.get(c.verb, c.verb), c.after, c.before) for c in diff(ORDER, changed).changes}
    assert there == back


def test_the_order_of_regions_matters_and_that_of_other_states_does_not():
    regions = {"a": {"initial": "a1", "states": {"a1": {}}}, "b": {"initial": "b1", "states": {"b1": {}}}}
    old = {"id": "order", "initial": "Both", "states": {"Both": {"type": "parallel", "states": regions}}}
    turned = change(old)
    turned["states"]["Both"]["states"] = dict(reversed(regions.items()))
    found = one(turned, old)
    assert (found.path, found.before, found.after, found.verdict) == ("states.Both.states", "a, b", "b, a", CHANGES)
    shipping = change()
    shipping["states"]["Shipping"]["states"] = dict(reversed(ORDER["states"]["Shipping"]["states"].items()))
    assert one(shipping).verdict == COMPATIBLE
    assert one(change() | {"states": dict(reversed(ORDER["states"].items()))}).verdict == COMPATIBLE
