"""What a permit lets a person do: judged in the step that commits, and refused with no key changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from machines.engine import BadInput, Conflict, Fire, NeedsApproval, NotAllowed, Permit, Refused
from tests.cases import for_each
from tests.engine.builders import NOW, machine, publish
from tests.engine.dumps import unchanged

WHO = {"actor": "ann", "reason": "r"}
NOBODY = Permit(frozenset())
ANYONE = Permit(None)
KEPT = {"target": "Done", "allow": ["board", "treasury"]}


def members(*groups: str) -> Permit:
    return Permit(frozenset(groups))


def kept(*ways: Any, **more: Any) -> dict[str, Any]:
    return machine("m", {"Open": {"on": {"go": list(ways)}}, "Done": {}, "Other": {}}, **more)


def regions(a: Any, b: Any, **more: Any) -> dict[str, Any]:
    """Two regions that hear ``go``; what is around them hears it as well."""
    states = {
        name: {"initial": f"{name}1", "states": {f"{name}1": {"on": {"go": way}} if way else {}, f"{name}2": {}}}
        for name, way in (("a", a), ("b", b))
    }
    around = {"type": "parallel", "states": states, "on": {"go": {"target": "Out", "allow": ["out"]}}}
    return machine("m", {"Both": around, "Out": {}}, **more)


# Transitions for certain groups


def test_the_error_says_which_transition_and_who_may(engine):
    publish(engine, kept(KEPT), "x")
    with unchanged(engine), pytest.raises(NotAllowed) as caught:
        engine.fire("m", "x", "go", permit=members("clerks"), **WHO)
    error = caught.value
    assert (error.machine, error.id, error.event, error.transition, error.target) == ("m", "x", "go", "t1", "Done")
    assert error.groups == ["board", "treasury"]
    assert str(error) == "go on m/x (t1 to Done) is only for members of board or treasury, as its definition declares"


@pytest.mark.parametrize("permit", [members("board"), members("x", "treasury"), ANYONE, None])
def test_one_of_the_groups_will_do_and_without_a_permit_nobody_asks(engine, permit):
    publish(engine, kept(KEPT), "x")
    assert engine.fire("m", "x", "go", permit=permit).state == "Done"


def test_it_is_refused_and_the_next_transition_is_not_tried(engine):
    publish(engine, kept(KEPT, "Other"), "x")
    with unchanged(engine), pytest.raises(NotAllowed):
        engine.fire("m", "x", "go", permit=NOBODY)


def test_a_transition_whose_guard_does_not_hold_keeps_nobody_out(engine):
    publish(engine, kept(KEPT | {"guard": "event.n > 3"}, "Other"), "x", "y")
    assert engine.fire("m", "x", "go", {"n": 1}, permit=NOBODY).state == "Other"
    with pytest.raises(NotAllowed):
        engine.fire("m", "y", "go", {"n": 4}, permit=NOBODY)
    with pytest.raises(Refused):
        engine.fire("m", "y", "stay", {"n": 4}, permit=NOBODY)


def test_no_action_runs_before_it_is_refused(engine):
    failing = {"actions": {"set": {"n": "1 / 0"}}}
    publish(engine, kept(KEPT | failing, context={"n": 1}), "x")
    with pytest.raises(NotAllowed):
        engine.fire("m", "x", "go", permit=NOBODY)
    with pytest.raises(Refused, match="division by zero"):
        engine.fire("m", "x", "go", permit=members("board"))


def test_a_guard_that_fails_is_passed_over_and_what_comes_then_is_judged(engine):
    publish(engine, kept({"target": "Other", "guard": "1 / 0 > 1"}, KEPT), "x")
    with unchanged(engine), pytest.raises(NotAllowed):
        engine.fire("m", "x", "go", permit=NOBODY)


@pytest.mark.parametrize(
    ("a", "b", "groups", "barred"),
    [
        ({"target": "a2", "allow": ["one"]}, {"target": "b2", "allow": ["two"]}, ["one"], ["two"]),
        ({"target": "a2", "allow": ["one"]}, {"target": "b2", "allow": ["two"]}, ["two"], ["one"]),
        ({"target": "a2", "allow": ["one"]}, {"target": "b2", "allow": ["two"]}, ["one", "two"], None),
        ("a2", {"target": "b2", "allow": ["two"]}, [], ["two"]),
        ("a2", "b2", [], None),
        ("a2", None, [], None),  # an outer one that an inner one pre-empts is not taken
        (None, None, ["one"], ["out"]),
    ],
)
def test_all_that_the_event_selects_is_judged_in_every_region(engine, a, b, groups, barred):
    publish(engine, regions(a, b), "x")
    if barred is None:
        assert engine.fire("m", "x", "go", permit=members(*groups)).revision == 2
        return
    with unchanged(engine), pytest.raises(NotAllowed) as caught:
        engine.fire("m", "x", "go", permit=members(*groups))
    assert caught.value.groups == barred


CHAIN = machine(
    "m",
    {
        "Open": {"on": {"go": {"target": "Mid", "actions": {"raise": "on"}}}},
        "Mid": {"on": {"on": KEPT, "again": {"actions": {"send": {"event": "on"}}}}},
        "Done": {},
    },
)


def test_what_the_machine_raises_and_sends_itself_is_its_own(engine):
    publish(engine, CHAIN, "x", "y")
    assert engine.fire("m", "x", "go", permit=NOBODY).state == "Done"
    engine.force("m", "y", "Mid", actor="test", reason="r")
    with pytest.raises(NotAllowed):
        engine.fire("m", "y", "on", permit=NOBODY)
    engine.fire("m", "y", "again", permit=NOBODY)
    engine.tick("m")
    assert engine.get("m", "y").state == "Done"


def test_many_are_judged_one_by_one(engine):
    publish(engine, kept(KEPT | {"guard": "event.n > 3"}, "Other"), "x", "y", "z")
    calls = [Fire("m", id, "go", {"n": n}, permit=NOBODY) for n, id in ((1, "x"), (4, "y"))]
    taken, refused, more = engine.fire_many([*calls, Fire("m", "z", "go", {"n": 4}, permit=members("board"))])
    assert (taken.state, more.state) == ("Other", "Done")
    assert isinstance(refused, NotAllowed)


def test_the_first_outcome_of_a_key_is_given_again_whoever_asks(engine):
    publish(engine, kept(KEPT), "x")
    engine.fire("m", "x", "go", key="k", permit=members("board"))
    with unchanged(engine):
        assert engine.fire("m", "x", "go", key="k", permit=NOBODY).outcome.replayed


def test_what_is_refused_leaves_its_key_free(engine):
    publish(engine, kept(KEPT), "x")
    with unchanged(engine), pytest.raises(NotAllowed):
        engine.fire("m", "x", "go", key="k", permit=NOBODY)
    assert engine.fire("m", "x", "go", key="k", permit=members("board")).outcome.replayed is False


# A second person

TWO = {"approval": ["fire:go", "delete", "force"]}
NOTED = {"by": "bob", "version": 1, "transitions": ("t1",)}


def test_an_event_that_takes_two_says_what_it_would_take(engine):
    publish(engine, kept({"target": "Done", "guard": "event.n > 3"}, "Other", **TWO), "x")
    with unchanged(engine), pytest.raises(NeedsApproval) as caught:
        engine.fire("m", "x", "go", {"n": 4}, permit=ANYONE, **WHO)
    error = caught.value
    assert (error.action, error.revision, error.version, error.transitions) == ("fire:go", 1, 1, ["t1"])
    assert str(error) == "fire:go on m/x needs approval, as its definition declares"


@pytest.mark.parametrize(
    ("what", "fits"),
    [
        (NOTED, True),
        ({"by": "bob"}, True),  # whatever it takes
        (NOTED | {"transitions": ("t2",)}, False),
        (NOTED | {"transitions": ("t1", "t2")}, False),
        (NOTED | {"transitions": ()}, False),
        (NOTED | {"version": 2}, False),
    ],
)
def test_just_what_was_approved_is_done(engine, what, fits):
    publish(engine, kept("Done", **TWO), "x")
    permit = ANYONE.approve("fire:go", **what)
    if fits:
        assert engine.fire("m", "x", "go", permit=permit, **WHO).state == "Done"
        return
    with unchanged(engine), pytest.raises(NeedsApproval):
        engine.fire("m", "x", "go", permit=permit, **WHO)


def test_an_approval_of_something_else_is_none(engine):
    publish(engine, kept("Done", **TWO), "x")
    for action in ("fire:stop", "delete", "fire:go.on", "fire:"):
        with unchanged(engine), pytest.raises(NeedsApproval):
            engine.fire("m", "x", "go", permit=ANYONE.approve(action, "bob"), **WHO)


def test_nobody_is_their_own_second_person(engine):
    publish(engine, kept("Done", **TWO), "x")
    with unchanged(engine), pytest.raises(BadInput, match="the second person must be another one than ann"):
        engine.fire("m", "x", "go", permit=ANYONE.approve("fire:go", "ann"), **WHO)


def test_a_longer_event_is_covered_by_a_shorter_name(engine):
    publish(engine, machine("m", {"Open": {"on": {"door": "Done"}}, "Done": {}}, approval=["fire:door"]), "x")
    for event in ("door", "door.open"):
        with pytest.raises(NeedsApproval) as caught:
            engine.fire("m", "x", event, permit=ANYONE)
        assert caught.value.action == f"fire:{event}"
    with pytest.raises(Refused):
        engine.fire("m", "x", "doors", permit=ANYONE)


def test_groups_count_before_and_beside_an_approval(engine):
    publish(engine, kept(KEPT, **TWO), "x")
    for permit in (NOBODY, NOBODY.approve("fire:go", "bob")):
        with pytest.raises(NotAllowed):
            engine.fire("m", "x", "go", permit=permit, **WHO)
    with pytest.raises(NeedsApproval):
        engine.fire("m", "x", "go", permit=members("board"), **WHO)
    assert engine.fire("m", "x", "go", permit=members("board").approve("fire:go", "bob"), **WHO).state == "Done"


def test_a_step_of_a_chart_that_selects_nothing_takes_two_as_well(engine):
    """A guard that fails raises an event, and that is a step."""
    broken = {"go": {"target": "Done", "guard": "1 / 0 > 1"}, "error.execution": "Other"}
    publish(engine, machine("m", {"Open": {"on": broken}, "Done": {}, "Other": {}}, errors="raise", **TWO), "x")
    with unchanged(engine), pytest.raises(NeedsApproval) as caught:
        engine.fire("m", "x", "go", permit=ANYONE, **WHO)
    assert caught.value.transitions == []


REPAIRS: dict[str, tuple[Any, ...]] = {
    "force": ("Done",), "edit": ({"n": 2},), "reset": (), "retry": ("Work",), "skip": ("Work",), "cancel": ("Work",),
    "suspend": (), "resume": (), "delete": (),
}  # fmt: skip


@pytest.mark.parametrize("name", REPAIRS)
def test_a_repair_that_takes_two_is_done_with_its_approval_alone(engine, name):
    work = {"src": "work", "delay": "1h", "onDone": "Done", "onError": "Done"}
    publish(engine, machine("m", {"Work": {"invoke": work}, "Done": {}}, context={"n": 1}, approval=[name]), "x")
    if name == "resume":
        engine.suspend("m", "x", actor="test", reason="r")
    repair = getattr(engine, name)
    for permit in (ANYONE, ANYONE.approve("other", "bob")):
        with unchanged(engine), pytest.raises(NeedsApproval) as caught:
            repair("m", "x", *REPAIRS[name], permit=permit, **WHO)
        assert (caught.value.action, caught.value.revision) == (name, engine.get("m", "x").revision)
    with unchanged(engine), pytest.raises(Conflict):
        repair("m", "x", *REPAIRS[name], permit=ANYONE, expect=7, **WHO)
    assert engine.preview("m", "x", name, **_named(name)).revision == engine.get("m", "x").revision
    repair("m", "x", *REPAIRS[name], permit=ANYONE.approve(name, "bob"), **WHO)


def _named(name: str) -> dict[str, Any]:
    words = {"force": "state", "edit": "changes", "retry": "invoke", "skip": "invoke", "cancel": "invoke"}
    return {words[name]: REPAIRS[name][0]} if name in words else {}


def test_repairs_are_not_asked_for_groups(engine):
    work = {"src": "work"}
    states = {"Work": {"invoke": work, "on": {"*": KEPT}}, "Done": {}}
    publish(engine, machine("m", states), "x")
    assert engine.skip("m", "x", "Work", permit=NOBODY, **WHO).state == "Done"


def test_actions_on_jobs_are_held_to_what_the_instance_asks_for(engine):
    work = {"src": "work", "delay": "1h", "onError": "Done"}
    publish(engine, machine("m", {"Work": {"invoke": work}, "Done": {}}, approval=["retry", "cancel"]), "x", "y")
    (job,) = engine.get("m", "x").jobs
    with unchanged(engine):
        for call in (
            lambda: engine.withdraw("m", job, permit=ANYONE, **WHO),
            lambda: engine.move_now("m", "work", job, permit=ANYONE, **WHO),
            lambda: engine.reschedule("m", job, queue="other", permit=ANYONE, **WHO),
            lambda: engine.purge("m", "work", place="delayed", permit=ANYONE, **WHO),
        ):
            with pytest.raises(NeedsApproval) as caught:
                call()
            assert (caught.value.machine, caught.value.id) == ("m", "x")
    assert engine.move_now("m", "work", permit=ANYONE, **WHO) == 0
    assert engine.move_now("m", "work", job, **WHO) == 1
    assert engine.purge("m", "work", place="delayed", **WHO) == 1
    assert engine.get("m", "y").state == "Done"


# What is no permit


TEXTS = [
    "x", "[", "1", '"x"', "{}", "[]", '{"groups": "board"}', '{"groups": [1]}', '{"groups": {"board": "x"}}',
    '{"groups": null, "approved": 1}', '{"groups": null, "approved": {}}', '{"groups": null, "other": 1}',
    '{"groups": null, "approved": {"action": "fire:go"}}', '{"groups": null, "approved": {"by": "bob"}}',
    '{"groups": null, "approved": {"action": "fire:go", "by": ""}}',
    '{"groups": null, "approved": {"action": "fire:go", "by": "bob", "who": 1}}',
    '{"groups": null, "approved": {"action": "fire:go", "by": "bob", "definition": "1"}}',
    '{"groups": null, "approved": {"action": "fire:go", "by": "bob", "transitions": "t1"}}',
    '{"groups": null, "approved": {"action": "fire:go", "by": "bob", "transitions": [["t1"]]}}',
    "[" * 2000, json.dumps({"groups": ["x" * 70_000]}),
]  # fmt: skip


def test_a_text_that_is_no_permit_lets_nobody_do_anything(engine):
    publish(engine, kept(KEPT, **TWO), "x")
    root = engine.keys.partition("m").root

    @for_each("text", TEXTS)
    def check(text):
        with unchanged(engine):
            reply = engine.client.fcall("sb_fire", 1, root, "x", "go", "", "", "", "", "", NOW, text)
            assert reply[0] == "BADARG"
            assert "permit" in reply[1]
            reply = engine.client.fcall("sb_delete", 1, root, "x", "", "ann", "r", "", text)
            assert reply[0] == "BADARG"

    check()


def test_what_is_none_is_not_sent(engine):
    publish(engine, kept("Done"), "x")

    @for_each(
        "permit",
        ["board", {"groups": None}, Permit("board"), Permit(frozenset([1])), Permit(frozenset(["x" * 70_000]))],
    )
    def check(permit):
        with unchanged(engine), pytest.raises(BadInput, match="permit"):
            engine.fire("m", "x", "go", permit=permit)

    check()


def test_names_of_groups_may_hold_anything(engine):
    odd = ['a "quoted" one', "näme 😀", "two\nlines", "x,y", " "]
    publish(engine, kept(KEPT | {"allow": odd[:4]}), "x")
    with pytest.raises(NotAllowed) as caught:
        engine.fire("m", "x", "go", permit=members(odd[4]))
    assert caught.value.groups == odd[:4]
    assert engine.fire("m", "x", "go", permit=members(odd[1])).state == "Done"
