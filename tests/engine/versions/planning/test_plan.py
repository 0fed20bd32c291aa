"""Plans map states, timers, invokes, histories and data; what they cannot map they name."""

from __future__ import annotations

import json

import pytest

from machines.engine import MigrationPlan, PlanError
from machines.engine.versions.planning.document import PlanOptions
from machines.engine.versions.planning.planner import make_plan

from ..content import ORDER, change, read, rename

OLD = read(1, ORDER)


def plan(definition, *, old=ORDER, **arguments):
    return make_plan("order", read(2, definition), [read(1, old)], **arguments)


def test_states_with_the_same_name_keep_their_place():
    made = plan(change(states__Paid__on={"ship": "Shipping", "cancel": "Cancelled"}))
    source = made.sources[0]
    assert source.states == {leaf: (leaf,) for leaf in OLD.outline.leaves}
    assert set(source.reasons.values()) == {"same name"}
    assert not source.unmapped_states
    assert not made.findings
    assert source.timers == {f"after.{t}": (f"after.{t2}", state) for t, t2, state in _timers(source)}
    assert source.invokes == {"Paying": "Paying"}
    assert source.histories == {"past": "past"}
    assert source.fields == {name: name for name in ORDER["context"]}


def _timers(source):
    after = [
        (old.removeprefix("after."), new.removeprefix("after."), state) for old, (new, state) in source.timers.items()
    ]
    assert [state for *_, state in after] == ["New", "Paying", "Paying"]
    return after


def test_a_renamed_state_has_no_place_but_a_suggestion():
    made = plan(rename(ORDER, "Paying", "Charging"))
    source = made.sources[0]
    assert source.unmapped_states == ("Paying",)
    old, new, score, why = source.suggestions[0]
    assert (old, new) == ("Paying", "Charging")
    assert score > 0.6
    assert "invokes the same: handler charge" in why
    (finding,) = [one for one in made.findings if one.code == "SB607"]
    assert (finding.path, finding.severity) == ("states.Paying", "warning")
    assert 'perhaps "Charging"' in finding.hint


def test_a_given_state_keeps_timers_and_the_job():
    source = plan(rename(ORDER, "Paying", "Charging"), states={"Paying": "Charging"}).sources[0]
    assert source.states["Paying"] == ("Charging",)
    assert source.reasons["Paying"] == "given"
    assert source.invokes == {"Paying": "Charging"}
    assert [state for _, state in source.timers.values()] == ["New", "Charging", "Charging"]


def test_a_timer_with_another_delay_is_another_timer():
    changed = change(states__Paying__after={"31s": "New", "2m": "Cancelled"})
    assert [state for _, state in plan(changed).sources[0].timers.values()] == ["New", "Paying"]
    written = change(states__Paying__after={"30000": "New", "120s": "Cancelled"})
    assert len(plan(written).sources[0].timers) == 3


def test_an_invoke_of_another_handler_is_another_invoke():
    changed = change(states__Paying__invoke={"src": "charge_anew", "onDone": "Paid", "onError": "New"})
    assert plan(changed).sources[0].invokes == {}


def test_a_given_compound_state_maps_its_leaves_that_have_no_place():
    changed = change(states__Shipping=None, states__Held__on={"go": "Delivery"})
    changed["states"]["Paid"]["on"] = {"ship": "Delivery"}
    changed["states"]["Delivery"] = {
        "initial": "moving",
        "states": {"moving": {"on": {"arrived": "#Done"}}, "lost": {"on": {"found": "moving"}}},
    }
    made = plan(changed, states={"Shipping": "Delivery", "past": None})
    source = made.sources[0]
    assert source.states["moving"] == ("moving",)
    assert source.states["packing"] == ("Delivery",)
    assert source.reasons["packing"] == "given for Shipping"
    assert source.reasons["moving"].startswith("same name; was Shipping.moving, is Delivery.moving")
    assert source.histories == {}
    back = made.inverse().sources[0]
    assert back.states["moving"] == ("moving",)
    assert back.states["lost"] == ("packing",)


def test_no_place_for_a_compound_state_is_no_place_for_its_leaves():
    source = plan(ORDER | {"description": "other"}, states={"Shipping": None}).sources[0]
    assert source.unmapped_states == ("packing", "moving")


def test_names_that_were_qualified_are_found_by_their_path():
    changed = change()
    changed["states"]["Held"] = {"initial": "packing", "states": {"packing": {"on": {"go": "past"}}}}
    source = plan(changed).sources[0]
    assert source.states["packing"] == ("Shipping.packing",)
    assert source.reasons["packing"] == "same path: Shipping.packing"
    assert source.states["Held"] == ("Held",)  # a compound state now, entered by its default


def test_a_state_becomes_several_regions_and_back():
    changed = change(states__Paid=None)
    changed["states"]["Paid"] = {
        "type": "parallel",
        "states": {
            "goods": {"initial": "idle", "states": {"idle": {"on": {"ship": "gone"}}, "gone": {}}},
            "bill": {"initial": "open", "states": {"open": {"on": {"sent": "shut"}}, "shut": {}}},
        },
    }
    changed["states"]["Shipping"]["on"] = {"hold": "Held"}
    made = plan(changed, states={"Paid": ["idle", "shut"]})
    assert made.sources[0].states["Paid"] == ("idle", "shut")
    back = made.inverse().sources[0]
    assert back.states["idle"] == back.states["shut"] == ("Paid",)
    assert back.states["gone"] == back.states["open"] == ("Paid",)


def test_data_is_copied_computed_added_and_removed():
    changed = change(context={"total": 0.5, "code": "", "cents": 0, "paid": False, "extra": []})
    made = plan(changed, data={"cents": "total * 100"})
    source = made.sources[0]
    assert source.fields == {"total": "total", "code": "code", "paid": "paid"}
    assert source.added == ("extra",)
    assert source.removed == ("note",)
    assert source.data == {"cents": "total * 100"}
    assert source.program()["data"] == [["cents", ["bin", "*", ["data", "total"], ["num", 100]]]]
    assert not [one for one in made.findings if one.path.startswith("data.")]


def test_the_program_is_what_the_library_takes():
    made = plan(
        rename(ORDER, "Paying", "Charging"),
        states={"Paying": "Charging"},
        unmapped="keep",
        options=PlanOptions(timers="now", removed="keep", suspended="refuse", actions=("entry",), keep_undo="2h"),
    )
    program = json.loads(json.dumps(made.program()))
    part = program.pop("from")["1:000000000001"]
    assert program == {
        "format": 1, "id": made.id, "to": "2:000000000002", "unmapped": "keep", "timers": "now", "removed": "keep",
        "suspended": "refuse", "actions": ["entry"], "undo": 7_200_000,
    }  # fmt: skip
    assert part["states"]["Paying"] == ["Charging"]
    assert part["invokes"] == {"Paying": "Charging"}
    assert set(part) == {"states", "histories", "timers", "invokes", "data", "fields"}


def test_a_stored_plan_is_the_same_plan():
    made = plan(rename(ORDER, "Paying", "Charging"), data={"total": "total + 1"})
    read_again = MigrationPlan.from_dict(json.loads(json.dumps(made.as_dict())))
    assert read_again == made
    assert read_again.id == made.id
    assert read_again.program() == made.program()


def test_the_inverse_of_the_inverse_is_the_plan():
    made = plan(rename(ORDER, "Paid", "Settled"), states={"Paid": "Settled", "Held": "Settled"})
    back = made.inverse()
    assert (back.to, back.sources[0].version) == (1, 2)
    assert back.inverse_of == made.id
    assert back.sources[0].states["Settled"] == ("Paid",)
    assert back.inverse() == made if not made.findings else back.inverse().sources == made.sources
    assert back.inverse().id == made.id
    assert back.inverse().program() == made.program()
    assert MigrationPlan.from_dict(back.as_dict()) == back


def test_a_plan_for_two_versions_leads_back_to_each():
    made = make_plan(
        "order", read(3, ORDER), [read(1, ORDER), read(2, change(states__Held=None, states__Shipping__on={}))]
    )
    back = made.inverse()
    assert [(one.version, one.to) for one in back.sources] == [(3, 1), (3, 2)]
    assert [program["to"] for program in back.programs()] == ["1:000000000001", "2:000000000002"]
    assert [program["inverse_of"] for program in back.programs()] == [made.id, made.id]
    with pytest.raises(PlanError, match="leads to versions 1, 2"):
        back.program()
    assert MigrationPlan.from_dict(back.as_dict()) == back
    assert back.inverse().programs() == made.programs()


def test_kept_values_are_not_copied_on_the_way_back():
    data = {"total": "total * 100"}
    kept = plan(ORDER, data=data, options=PlanOptions(removed="keep")).inverse().sources[0]
    assert "total" in kept.added
    assert "total" not in kept.fields
    assert plan(ORDER, data=data).inverse().sources[0].fields["total"] == "total"


def test_a_child_is_the_same_only_under_its_id():
    old = change(states__Paying__invoke={"src": "machine:bill", "onDone": "Paid"})
    assert plan(rename(old, "Paying", "Charging"), old=old, states={"Paying": "Charging"}).sources[0].invokes == {}
    old["states"]["Paying"]["invoke"]["id"] = "bill"
    same = plan(rename(old, "Paying", "Charging"), old=old, states={"Paying": "Charging"})
    assert same.sources[0].invokes == {"bill": "bill"}
