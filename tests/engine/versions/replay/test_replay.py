"""Replays of recorded histories: on the version that took the steps, on another one, and on a draft."""

from __future__ import annotations

import pytest

from machines.engine import BadInput, DefinitionError, Engine, UnknownMachine
from machines.engine.versions.records import UNTOLD
from tests.engine.builders import NOW, fields, machine
from tests.engine.dumps import dump, silence

SECOND = 1000


def order(**top):
    """An order: paid above 10, packed by a job, sent; an unpaid one is dropped after 30 s."""
    context = fields(total={"type": "integer", "default": 0}, note="string", code="string")
    states = {
        "New": {
            "on": {
                "pay": {
                    "target": "Paid",
                    "guard": "event.amount > 10",
                    "actions": {"set": {"total": "event.amount"}},
                }
            },
            "after": {"30s": "Dropped"},
        },
        "Paid": {"invoke": {"id": "pack", "src": "pack", "onDone": "Packed", "onError": "Failed"}},
        "Packed": {"on": {"send": "Sent", "note": {"actions": {"set": {"note": "event.text"}}}}},
        "Sent": {"type": "final"},
        "Failed": {"on": {"retry": "Paid"}},
        "Dropped": {"type": "final"},
    }
    return machine("order", states, context=context) | top


def change(definition, **states):
    return definition | {"states": definition["states"] | states}


@pytest.fixture
def orders(engine: Engine) -> Engine:
    """Six orders on version 1: a and b sent, c failed, d dropped by its timer, e new, f forced."""
    engine.publish(order())
    for id in "abcdef":
        engine.create("order", id, now=NOW)
    for n, id in enumerate("abc"):
        engine.fire("order", id, "pay", {"amount": 11 + n}, now=NOW + SECOND)
    for job in engine.take("order", "pack", "w", count=2, now=NOW + 2 * SECOND):
        engine.complete(job, {"box": 1}, now=NOW + 3 * SECOND)
    (job,) = engine.take("order", "pack", "w", now=NOW + 3 * SECOND)
    engine.fail(job, "no box", retry=False, now=NOW + 4 * SECOND)
    for id in "ab":
        engine.fire("order", id, "note", {"text": f"for {id}"}, now=NOW + 5 * SECOND)
        engine.fire("order", id, "send", now=NOW + 6 * SECOND)
    for id in "ef":
        engine.suspend("order", id, actor="ann", reason="r", now=NOW + 7 * SECOND)
    engine.tick("order", now=NOW + 31 * SECOND)
    for id in "ef":
        engine.resume("order", id, overdue="shift", actor="ann", reason="r", now=NOW + 32 * SECOND)
    engine.force("order", "f", "Packed", data={"code": "x"}, actor="ann", reason="r", now=NOW + 33 * SECOND)
    return engine


def count_recorded(engine):
    return sum(engine.get("order", id).revision for id in "abcdef")


def adds_up(engine, found):
    assert found.recorded == count_recorded(engine)
    assert found.instances == 6
    assert set(found.untold) <= set(UNTOLD)
    return found


def test_on_its_own_version_each_step_repeats_and_nothing_is_written(orders):
    silence(orders)
    before = dump(orders)
    found = adds_up(orders, orders.replay("order", 1))
    assert (found.divergences, found.untold, found.skipped) == ([], {}, 0)
    assert found.steps == count_recorded(orders)
    assert dump(orders) == before


def test_a_guard_that_refuses_now_is_a_class_with_its_first_step(orders):
    new = order()["states"]["New"]
    pay = new["on"]["pay"] | {"guard": "event.amount > 12"}
    orders.publish(change(order(), New=new | {"on": {"pay": pay}}))
    (one,) = adds_up(orders, orders.replay("order", 2)).divergences
    assert (one.count, one.version, one.path, one.event, one.kinds) == (2, 1, "New", "pay", ("refused",))
    assert one.expected.configuration == ("Paid",)
    assert one.actual.configuration == ("New",)
    assert (one.step, one.at, sorted(one.examples)) == (2, NOW + SECOND, ["a", "b"])


def test_data_that_an_action_sets_otherwise_is_shown_with_both_values(orders):
    packed = order()["states"]["Packed"]
    other = {"set": {"note": "upper(event.text)"}}
    orders.publish(change(order(), Packed=packed | {"on": packed["on"] | {"note": {"actions": other}}}))
    (one,) = adds_up(orders, orders.replay("order", 2)).divergences
    assert (one.count, one.kinds, one.event) == (2, ("data",), "note")
    id = one.example
    assert (dict(one.expected.data), dict(one.actual.data)) == ({"note": f"for {id}"}, {"note": f"FOR {id.upper()}"})


def test_a_renamed_state_corresponds_by_the_map(orders):
    states = order()["states"]
    renamed = {("Ready" if name == "Packed" else name): state for name, state in states.items()}
    renamed["Paid"] = {"invoke": {"id": "pack", "src": "pack", "onDone": "Ready", "onError": "Failed"}}
    orders.publish(order() | {"states": renamed})
    found = adds_up(orders, orders.replay("order", 2, states={"Packed": "Ready"}))
    assert found.divergences == []
    assert found.steps == count_recorded(orders)


def test_a_state_that_is_gone_is_a_divergence_where_an_instance_enters_it(orders):
    states = {name: state for name, state in order()["states"].items() if name != "Packed"}
    states["Paid"] = {"invoke": {"id": "pack", "src": "pack", "onDone": "Sent", "onError": "Failed"}}
    orders.publish(order() | {"states": states})
    found = adds_up(orders, orders.replay("order", 2))
    assert {(one.event, one.count, one.kinds) for one in found.divergences} == {
        ("done.invoke.pack", 2, ("configuration",)),
        ("(force)", 1, ("configuration",)),
    }


def test_states_grouped_under_a_compound_correspond_by_their_names(orders):
    states = order()["states"]
    grouped = {
        "Work": {"initial": "Paid", "states": {"Paid": states["Paid"], "Packed": states["Packed"]}},
        **{name: state for name, state in states.items() if name not in ("Paid", "Packed")},
    }
    grouped["Work"]["states"]["Paid"] = {
        "invoke": {"id": "pack", "src": "pack", "onDone": "Packed", "onError": "#Failed"}
    }
    grouped["Work"]["states"]["Packed"] = {"on": states["Packed"]["on"] | {"send": "#Sent"}}
    grouped["Failed"] = {"id": "Failed"} | grouped["Failed"]
    grouped["Sent"] = {"id": "Sent"} | grouped["Sent"]
    grouped["New"] = {"on": states["New"]["on"], "after": states["New"]["after"]}
    orders.publish(order() | {"initial": "New", "states": grouped})
    assert adds_up(orders, orders.replay("order", 2)).divergences == []


def test_a_shorter_timer_fires_first(orders):
    orders.publish(change(order(), New=order()["states"]["New"] | {"after": {"500ms": "Dropped"}}))
    found = adds_up(orders, orders.replay("order", 2))
    # e and f were suspended when the timer would have fired: the first recorded step after 500 ms is that.
    assert {one.kinds for one in found.divergences} == {("timer",)}
    assert sum(one.count for one in found.divergences) == 6
    assert all(one.actual.configuration == ("Dropped",) for one in found.divergences)


def test_a_longer_timer_does_not_fire_where_the_recorded_one_did(orders):
    orders.publish(change(order(), New=order()["states"]["New"] | {"after": {"60s": "Dropped"}}))
    (one,) = adds_up(orders, orders.replay("order", 2)).divergences
    assert (one.example, one.kinds, one.expected.configuration) == ("d", ("refused",), ("Dropped",))


def test_a_definition_that_is_not_published_is_replayed_too(orders):
    assert orders.replay("order", order(description="the same, described")).divergences == []
    (one,) = orders.replay("order", change(order(), Paid={"on": {"done.invoke.pack": "Sent"}})).divergences[:1]
    assert one.event in ("done.invoke.pack", "error.invoke.pack")
    assert orders.versions("order") == [1]


def test_a_sample_is_spread_over_the_states(orders):
    found = orders.replay("order", 1, 4)
    assert found.instances == 4
    assert orders.replay("order", 1, 600).instances == 6


def test_long_histories_continue_over_several_calls(engine):
    definition = machine(
        "tally", {"On": {"on": {"add": {"actions": {"set": {"n": "n + 1"}}}}}}, context={"n": 0}, history=5000
    )
    engine.publish(definition)
    engine.create("tally", "a", now=NOW)
    engine.fire_many([("tally", "a", "add") for _ in range(3500)])
    found = engine.replay("tally", 1)
    assert (found.steps, found.divergences) == (3501, [])
    engine.publish(
        machine(
            "tally",
            {"On": {"on": {"add": {"guard": "n < 3000", "actions": {"set": {"n": "n + 1"}}}}}},
            context={"n": 0},
            history=5000,
        )
    )
    (one,) = engine.replay("tally", 2).divergences
    assert one.step == 3002


# What a history cannot tell


def test_trimmed_steps_are_counted(engine):
    engine.publish(
        machine("tally", {"On": {"on": {"add": {"actions": {"set": {"n": "n + 1"}}}}}}, context={"n": 0}, history=5)
    )
    engine.create("tally", "a", now=NOW)
    engine.fire_many([("tally", "a", "add") for _ in range(100)])
    found = engine.replay("tally", 1)
    assert (found.steps, found.divergences) == (0, [])
    assert found.untold["trimmed"] == len(engine.history("tally", "a", limit=1000))


def test_a_payload_that_was_too_long_to_keep_is_said_and_the_rest_is_replayed(engine):
    set_size = {"actions": {"set": {"n": "len(event.text)"}}}
    engine.publish(machine("m", {"On": {"on": {"text": set_size, "end": "Off"}}, "Off": {}}, context={"n": 0}))
    engine.create("m", "a", now=NOW)
    engine.fire("m", "a", "text", {"text": "x" * 2000}, now=NOW)
    engine.fire("m", "a", "text", {"text": "xy"}, now=NOW)
    engine.fire("m", "a", "end", now=NOW)
    found = engine.replay("m", 1)
    assert (found.steps, found.untold, found.divergences) == (3, {"payload": 1}, [])


def test_random_values_repeat_on_their_own_version_and_are_said_on_another(engine):
    token = {"target": "On", "actions": {"set": {"code": "random_token(8)"}}, "reenter": True}
    first = machine("m", {"On": {"on": {"go": token}}}, context={"code": ""})
    engine.publish(first)
    engine.create("m", "a", now=NOW)
    engine.fire("m", "a", "go", now=NOW)
    engine.fire("m", "a", "go", now=NOW + 1)
    assert engine.replay("m", 1).untold == {}
    engine.publish(first | {"description": "another one"})
    found = engine.replay("m", 2)
    assert (found.steps, found.untold, found.divergences) == (1, {"random": 2}, [])


def test_data_that_was_given_and_then_set_is_said(engine):
    engine.publish(
        machine("m", {"On": {"entry": {"set": {"n": "n * 2"}}, "on": {"go": "Off"}}, "Off": {}}, context={"n": 1})
    )
    engine.create("m", "a", {"n": 21}, now=NOW)
    engine.fire("m", "a", "go", now=NOW)
    found = engine.replay("m", 1)
    assert (found.steps, found.untold, found.divergences) == (1, {"creation": 1}, [])


def test_data_that_was_given_is_told_from_what_actions_set(engine):
    states = {"On": {"entry": {"set": {"m": "n + 1"}}, "always": {"target": "Big", "guard": "n > 5"}}, "Big": {}}
    engine.publish(machine("m", states, context={"n": 1, "m": 0}))
    engine.create("m", "a", {"n": 21}, now=NOW)
    engine.create("m", "b", now=NOW)
    found = engine.replay("m", 1)
    assert (found.steps, found.untold, found.divergences) == (2, {}, [])


# Bad input


def test_versions_and_maps_that_cannot_be_are_refused(orders):
    with pytest.raises(UnknownMachine):
        orders.replay("order", 7)
    with pytest.raises(UnknownMachine):
        orders.replay("nothing", 1)
    for states in ({"Nowhere": "New"}, {"New": "Nowhere"}, {"New": 5}):
        with pytest.raises(BadInput) as caught:
            orders.replay("order", 1, states=states)
        assert caught.value.code == "SB635"
    for version in ("1", None, True, order() | {"id": "other"}):
        with pytest.raises(BadInput) as caught:
            orders.replay("order", version)
        assert caught.value.code == "SB636"
    with pytest.raises(DefinitionError):
        orders.replay("order", order() | {"initial": "Nowhere"})
    with pytest.raises(BadInput):
        orders.replay("order", 1, 0)


# Instances that were moved


def renamed_order():
    """The order whose packed orders are called ready."""
    states = order()["states"]
    renamed = {("Ready" if name == "Packed" else name): state for name, state in states.items()}
    renamed["Paid"] = {"invoke": {"id": "pack", "src": "pack", "onDone": "Ready", "onError": "Failed"}}
    return order() | {"states": renamed}


@pytest.fixture
def moved(orders):
    """All orders were moved to a version that has another name for a state, and some took steps there."""
    orders.publish(renamed_order())
    plan = orders.plan("order", 2, states={"Packed": "Ready"})
    assert orders.migrate(plan).moved == 6
    orders.fire("order", "f", "note", {"text": "moved"}, now=NOW + 40 * SECOND)
    orders.fire("order", "e", "pay", {"amount": 20}, now=NOW + 41 * SECOND)
    return plan


def test_a_history_goes_on_behind_a_move_to_another_version(orders, moved):
    for version in (2, 1, order(), renamed_order()):
        found = adds_up(orders, orders.replay("order", version))
        assert (found.divergences, found.untold) == ([], {})


def test_a_history_of_a_move_and_its_way_back_has_no_divergence(orders, moved):
    assert orders.migrate(moved.inverse()).moved == 6
    orders.fire("order", "f", "send", now=NOW + 50 * SECOND)
    for version in (1, 2, order(), renamed_order()):
        found = adds_up(orders, orders.replay("order", version))
        assert (found.divergences, found.untold) == ([], {})


def test_a_move_whose_plan_is_not_recorded_is_known_by_what_it_did(orders, moved):
    """An earlier release moved by it, or the machine was imported."""
    meta = orders.keys.partition("order").meta
    recorded = [name for name in orders.client.hkeys(meta) if str(name).startswith("plan:")]
    assert orders.client.hdel(meta, *recorded) == 1
    orders.migrate(moved.inverse())
    orders.client.hdel(meta, *(name for name in orders.client.hkeys(meta) if str(name).startswith("plan:")))
    found = orders.replay("order", 1)
    assert (found.divergences, found.untold) == ([], {})
    differing = {one.example for one in orders.replay("order", 2).divergences}
    assert differing <= {"a", "b"}  # they were in the state that has another name now, but not when they were moved


def test_a_chain_of_renamed_states_is_followed(engine):
    for name in ("One", "Two", "Three"):
        states = {"A": {"on": {"go": name}}, name: {"on": {"back": "A", "stay": {"actions": {"set": {"n": "n + 1"}}}}}}
        engine.publish(machine("thing", states, context={"n": 0}))
    for number, id in enumerate("ab"):
        engine.create("thing", id, version=1, now=NOW)
        engine.fire("thing", id, "go", now=NOW + 1)
        if number:
            engine.fire("thing", id, "back", now=NOW + 2)
    for to, states in ((2, {"One": "Two"}), (3, {"Two": "Three"})):
        assert engine.migrate(engine.plan("thing", to, from_versions=[to - 1], states=states)).moved == 2
        engine.fire("thing", "a", "stay", now=NOW + 3)
        engine.fire("thing", "b", "go", now=NOW + 4)
        engine.fire("thing", "b", "back", now=NOW + 5)
    for version in (1, 2, 3):
        found = engine.replay("thing", version)
        assert (found.divergences, found.untold, found.steps) == ([], {}, found.recorded)


def test_states_that_were_exchanged_are_followed(engine):
    one = {"A": {"on": {"go": "B"}}, "B": {"on": {"halt": "A"}}}
    two = {"B": {"on": {"go": "A"}}, "A": {"on": {"halt": "B"}}}
    engine.publish(machine("thing", one))
    engine.create("thing", "x", now=NOW)
    engine.fire("thing", "x", "go", now=NOW + 1)
    engine.publish(machine("thing", two))
    plan = engine.plan("thing", 2, states={"A": "B", "B": "A"})
    engine.migrate(plan)
    engine.fire("thing", "x", "halt", now=NOW + 2)
    engine.migrate(plan.inverse())
    engine.fire("thing", "x", "go", now=NOW + 3)
    for version in (1, 2):
        found = engine.replay("thing", version)
        assert (found.divergences, found.untold, found.steps) == ([], {}, found.recorded)


def test_what_the_caller_says_counts_before_what_was_recorded(orders, moved):
    found = orders.replay("order", 2, states={"Packed": "Failed"})
    assert {one.path for one in found.divergences} == {"Paid"}


def test_a_divergence_behind_a_move_is_found(orders, moved):
    changed = renamed_order()
    changed["states"]["Ready"] = {"on": {"send": "Sent"}}
    found = orders.replay("order", changed).divergences
    assert {(one.version, one.event, one.kinds) for one in found} == {(n, "note", ("refused",)) for n in (1, 2)}
