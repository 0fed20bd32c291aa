"""What can be wrong with a chart, and what is only doubtful."""

from __future__ import annotations

from machines.engine.definitions import check, compile
from tests.cases import for_each
from tests.engine.definitions.builders import codes, found, inside, machine, player


def only_warnings(definition):
    compile(definition)
    return [line.split(":")[0] for line in found(definition)]


def deep(levels):
    state = {}
    for _ in range(levels - 1):
        state = {"initial": "s", "states": {"s": state}}
    return machine({"A": state | {"on": {"x": "B"}}, "B": {"type": "final"}})


def test_states_inside_states_have_a_bound():
    assert codes(deep(32)) == []
    assert "SB111" in codes(deep(33))


def test_all_states_are_counted_wherever_they_stand():
    definition = machine({"C": {"initial": "s0", "states": {f"s{n}": {} for n in range(500)}}})
    assert "SB111 states: 501 states; at most 500 are allowed" in found(definition)


@for_each(
    "definition, line",
    [
        (inside({"a": {}}, initial="out"), 'SB123 states.C.initial: the state "out" is not inside "C"; there are: "a"'),
        (inside({"a": {}}, initial="#C"), 'SB123 states.C.initial: the state "C" is not inside "C"'),
        (inside({"a": {}}, initial="b"), 'SB101 states.C.initial: no state "b"'),
        (inside({"a": {}}, initial={"actions": []}), 'SB106 states.C.initial.target: "target" is missing'),
        (inside({"a": {}}, initial={"to": "a"}), 'SB105 states.C.initial.to: no key "to"'),
        (inside({"a": {}, "b": {}}, initial=["a", "b"]), 'SB122 states.C.initial: the targets "a", "b" cannot be'),
        (machine({"C": {"states": {"a": {}}}}), 'SB106 states.C.initial: "initial" is missing; write "initial": "a"'),
        (inside({}), "SB106 states.C.states: there are no states"),
        (inside({"a": {"type": "compound"}}), 'SB106 states.C.states.a.type: a compound state needs "states"'),
        (inside({"a": {"type": "parallel"}}), 'SB106 states.C.states.a.type: a parallel state needs "states"'),
        (inside({"a": {}}, type="atomic"), "SB104 states.C.type: an atomic state has no states inside"),
        (inside({"a": {}}, type="parallel"), 'SB119 states.C.initial: "initial" has no meaning here'),
        (machine(type="parallel"), 'SB119 initial: "initial" has no meaning here'),
        (machine(type="final"), 'SB104 type: no type of machine "final"'),
        (machine(errors="ignore"), 'SB104 errors: no way with errors "ignore"; "refuse" or "raise"'),
        (machine(errors=True), "SB104 errors: expected refuse or raise, found true"),
        (inside({"a": {}, "h": {"type": "history"}}, initial="h"), 'SB106 states.C.states.h.target: "C" begins with'),
        (
            inside({"a": {}, "h": {"type": "history", "target": "out"}}),
            'SB123 states.C.states.h.target: the history state "h" cannot lead to "out"; there are: "a"',
        ),
        (
            inside({"a": {}, "h": {"type": "history", "target": "h"}}),
            'SB123 states.C.states.h.target: the history state "h" cannot lead to "h"',
        ),
        (
            inside({"a": {}, "h": {"type": "history", "target": "g"}, "g": {"type": "history", "target": "h"}}),
            'SB123 states.C.states.h: history states that lead to each other and nowhere else: "h" → "g" → "h"',
        ),
        (
            inside({"a": {}, "h": {"type": "history", "history": "long"}}),
            'SB104 states.C.states.h.history: no kind of history "long"; "shallow" or "deep"',
        ),
        (
            inside({"a": {}, "h": {"type": "history", "on": {"x": "a"}}}),
            'SB119 states.C.states.h.on: "on" has no meaning here: a history state is never active itself',
        ),
        (machine({"A": {"type": "history"}}), 'SB123 states.A: the history state "A" stands in no other state'),
        (machine({"A": {"initial": "B"}}), 'SB119 states.A.initial: "initial" belongs to a state with states inside'),
        (machine({"A": {"history": "deep"}}), 'SB119 states.A.history: "history" belongs to a history state'),
        (machine({"A": {"target": "A"}}), 'SB119 states.A.target: "target" belongs to a transition or a history'),
        (machine({"A": {"output": "now"}}), 'SB119 states.A.output: "output" belongs to a final state or the machine'),
        (machine({"A": {"onDone": "A"}}), 'SB119 states.A.onDone: "onDone" belongs to an invoke, or to a state with'),
        (inside({"a": {"type": "final", "states": {"x": {}}}}), "SB117 states.C.states.a.states: the final state"),
        (inside({"a": {"type": "final", "after": {"1s": "out"}}}), "SB117 states.C.states.a.after: the final state"),
        (
            machine({"P": {"type": "parallel", "states": {"a": {"type": "final"}, "b": {}}}}),
            "SB104 states.P.states.a.type: a state inside a parallel state cannot be final itself; put a final state",
        ),
        (machine({"A": {"after": {"soon enough": "A"}}}), 'SB113 states.A.after["soon enough"]: neither a duration'),
        (machine({"A": {"after": {"n": "A"}}}), 'SB102 states.A.after.n: no data field "n"'),
        (machine({"A": {"after": {"99999999d": "A"}}}), "SB114 states.A.after"),
        (machine({"A": {"after": ["1s"]}}), "SB104 states.A.after: expected an object of delays and transitions"),
        (
            machine({"A": {"after": {"1s": {"target": "A", "guard": "event.x"}}}}),
            'SB103 states.A.after["1s"].guard: no field of the event of a timer called "x"',
        ),
        (machine({"A": {"on": {"x": {"guard": 'In("b")'}}}}), 'SB101 states.A.on.x.guard: no state "b"'),
        (
            machine({"A": {"on": {"x": {"guard": "trigger.nam"}}}}),
            'SB121 states.A.on.x.guard: no fact of the trigger called "nam"; did you mean "name"?',
        ),
        (machine(context={"trigger": 1}), 'SB107 context.trigger: the field name "trigger" must not be a word'),
        (machine(events={"after.t3": {}}), 'SB107 events["after.t3"]: the event name "after.t3" must not start'),
    ],
)
def test_a_mistake_is_named_with_its_place(definition, line):
    assert any(finding.startswith(line) for finding in found(definition)), found(definition)
    assert any(finding.is_error for finding in check(definition))


def test_in_takes_a_name_and_says_which_when_given_a_key():
    definition = player()
    definition["states"]["on"]["on"]["go"] = {"guard": 'In("idle")'}
    (line,) = found(definition)
    assert line.endswith('no state is called "idle"; the name is "on.volume.idle" or "on.track.idle"')


@for_each(
    "key, value, line",
    [
        ("queue", "q", 'SB119 states.A.invoke.queue: "queue" belongs to the work of a handler, not to a machine'),
        ("retry", {}, 'SB119 states.A.invoke.retry: "retry" belongs to the work of a handler'),
        ("src", "machine:", 'SB107 states.A.invoke.src: the machine name "" must be'),
        ("src", "machine:a b", 'SB107 states.A.invoke.src: the machine name "a b" must be'),
        ("src", {"exp": 1}, 'SB106 states.A.invoke.src.expr: "expr" is missing'),
        ("src", {"expr": "m"}, 'SB102 states.A.invoke.src.expr: no data field "m"'),
        ("src", 3, "SB104 states.A.invoke.src: expected a handler's name, or machine: and a machine's"),
        ("autoforward", 1, "SB104 states.A.invoke.autoforward: expected true or false"),
        ("idlocation", "nobody", 'SB102 states.A.invoke.idlocation: no data field "nobody"'),
        ("idlocation", "n", 'SB112 states.A.invoke.idlocation: "n" is integer, an id is string'),
        ("finalize", {"set": {"m": 1}}, 'SB102 states.A.invoke.finalize.set.m: no data field "m"'),
        ("input", "n", "SB104 states.A.invoke.input: expected an object of values"),
    ],
)
def test_a_mistake_in_the_invoke_of_a_machine_is_named(key, value, line):
    invoke = {"src": "machine:other"} | {key: value}
    definition = machine({"A": {"invoke": invoke, "on": {"x": "A"}}}, context={"n": 0})
    assert any(finding.startswith(line) for finding in found(definition)), found(definition)


def test_what_belongs_to_a_machine_is_not_for_a_handler():
    definition = machine({"A": {"invoke": {"src": "h", "finalize": []}, "on": {"x": "A"}}})
    assert any(line.startswith("SB119 states.A.invoke.finalize:") for line in found(definition))


def test_ids_of_invokes_that_run_at_once_must_not_begin_with_each_other():
    child = {"a": {"invoke": {"src": "h", "id": "work.more"}}}
    assert "SB115" in codes(inside(child, invoke={"src": "h", "id": "work"}))
    definition = inside({"a": {"invoke": {"src": "h", "id": "work"}, "on": {"x": "b"}}, "b": {}})
    definition["states"]["C"]["states"]["b"] = {"invoke": {"src": "h", "id": "work.more"}}
    assert only_warnings(definition) == []


# -- states that are never reached ------------------------------------------------------------------


def test_a_chart_without_faults_has_no_findings():
    assert check(player()) == []


def test_a_state_inside_that_nothing_leads_to():
    assert only_warnings(inside({"a": {}, "island": {}})) == ["SB201 states.C.states.island"]


def test_only_the_outermost_of_unreached_states_is_named():
    states = {"A": {"on": {"x": "B"}}, "B": {"type": "final"}, "C": {"initial": "a", "states": {"a": {}}}}
    states["C"]["on"] = {"y": "B"}
    assert only_warnings(machine(states)) == ["SB201 states.C"]


def test_a_transition_of_the_machine_reaches_what_it_leads_to():
    definition = machine({"A": {}, "B": {}}, on={"x": "A", "y": "B"})
    assert only_warnings(definition) == []


def test_the_regions_beside_a_target_begin_where_they_begin():
    definition = player()
    regions = definition["states"]["on"]["states"]
    definition["states"]["off"] = {"on": {"jump": "#loud"}}
    del regions["last"]
    assert only_warnings(definition) == []
    regions["volume"]["states"]["loud"]["on"].pop("down")
    assert only_warnings(definition) == ["SB201 states.on.states.volume.states.idle"]


def test_a_history_nothing_leads_to():
    assert only_warnings(inside({"a": {}, "h": {"type": "history"}})) == ["SB201 states.C.states.h"]


def test_the_default_of_a_history_is_reached():
    definition = inside({"a": {"on": {"x": "h"}}, "h": {"type": "history", "target": "b"}, "b": {}})
    assert only_warnings(definition) == []


# -- states that are never left ---------------------------------------------------------------------


def test_a_way_out_of_a_state_around_is_a_way_out():
    assert only_warnings(inside({"a": {"on": {"x": "b"}}, "b": {}})) == []


def test_without_a_way_out_of_any_state_around_it_is_a_trap():
    definition = inside({"a": {"on": {"x": "b"}}, "b": {}}, on={"y": {"actions": []}})
    assert only_warnings(definition) == ["SB202 states.C.states.b", "SB201 states.out"]


def test_a_way_back_to_itself_is_no_way_out():
    definition = inside({"a": {}, "b": {}}, on={"y": ".a"})
    assert only_warnings(definition) == ["SB202 states.C.states.a", "SB201 states.C.states.b", "SB201 states.out"]


def test_a_region_is_left_when_another_leaves_the_parallel_state():
    regions = {"R": {"initial": "r", "states": {"r": {}}}, "S": {"initial": "s", "states": {"s": {"on": {"x": "B"}}}}}
    states = {"P": {"type": "parallel", "states": regions}, "B": {"type": "final"}}
    assert only_warnings(machine(states)) == []


def test_the_end_of_a_state_is_no_way_out_of_what_does_not_end():
    definition = inside({"a": {"on": {"x": "b", "z": "z"}}, "b": {}, "z": {"type": "final"}}, on={}, onDone="out")
    assert only_warnings(definition) == ["SB202 states.C.states.b"]


def test_a_final_state_inside_that_nobody_waits_for():
    definition = inside({"a": {"on": {"x": "z"}}, "z": {"type": "final"}}, on={})
    definition["states"]["C"]["states"]["a"]["on"]["y"] = "out"
    assert found(definition) == [
        'SB202 states.C.states.z: "z" ends "C", and nothing leads on from there; write "onDone" on the state around it'
    ]


def test_the_end_of_each_region_of_a_parallel_machine_is_its_end():
    region = {"initial": "a", "states": {"a": {"on": {"x": "z"}}, "z": {"type": "final"}}}
    other = {"initial": "b", "states": {"b": {"on": {"x": "y"}}, "y": {"type": "final"}}}
    assert only_warnings({"id": "m", "type": "parallel", "states": {"R": region, "S": other}}) == []


# -- circles, chains, timers ------------------------------------------------------------------------


def test_a_circle_through_states_inside_is_found_when_it_is_certain():
    circle = {"B": {"initial": "b", "states": {"b": {"always": "A"}}}, "A": {"always": "B"}}
    assert any("SB118" in line and '"b" → "A" → "b"' in line for line in found(machine(circle)))
    circle["B"]["states"]["b"]["always"] = {"target": "A", "guard": "now"}
    assert "SB118" not in codes(machine(circle))


def test_a_circle_of_a_state_around_goes_on_in_whatever_is_inside():
    definition = inside({"a": {}}, always={"actions": {"log": "now"}})
    assert "SB118" in codes(definition)


def test_an_inner_always_comes_before_the_outer_circle():
    assert "SB118" not in codes(inside({"a": {"always": "out"}}, always={"actions": {"log": "now"}}))


def test_in_a_parallel_state_no_circle_is_certain():
    regions = {"R": {"initial": "a", "states": {"a": {"always": "b"}, "b": {"always": "a"}}}, "S": {}}
    states = {"P": {"type": "parallel", "states": regions, "on": {"x": "B"}}, "B": {"type": "final"}}
    assert "SB118" not in codes(machine(states))


def test_a_state_around_may_hold_the_else_of_a_chain():
    chain = [{"guard": "now > 1", "target": "a"}, {"guard": "now > 2", "target": "b"}]
    definition = inside({"a": {"on": {"x": chain}}, "b": {}})
    assert only_warnings(definition) == ["SB204 states.C.states.a.on.x"]
    definition["states"]["C"]["on"]["x"] = "out"
    assert only_warnings(definition) == []


def test_the_end_of_a_state_that_is_not_there():
    definition = inside({"a": {"on": {"x": "z"}}, "z": {"type": "final"}}, on={"done.state.D": "out"})
    assert only_warnings(definition) == ["SB209 states.C.on.done.state.D".replace(".done.state.D", '["done.state.D"]')]
    definition["states"]["C"]["on"] = {"done.state.C": "out"}
    assert only_warnings(definition) == []


def test_work_of_a_state_around_ends_in_the_states_inside_too():
    states = {"a": {"on": {"done.invoke.C": "out"}}}
    assert only_warnings(inside(states, invoke={"src": "h"})) == []
    assert only_warnings(inside({"a": {"on": {"done.invoke.D": "out"}}}, invoke={"src": "h"})) == [
        'SB209 states.C.states.a.on["done.invoke.D"]'
    ]


def test_what_a_child_instance_brings_is_its_own_affair():
    invoke = {"src": "machine:other", "onDone": {"target": "B", "guard": "event.anything"}, "onError": "B"}
    assert only_warnings(machine({"A": {"invoke": invoke}, "B": {"type": "final"}})) == []


def timed(after, **state):
    return machine({"A": {"after": after, "on": {"x": "B"}} | state, "B": {"type": "final"}}, context={"n": 0})


def test_a_timer_that_changes_nothing():
    assert only_warnings(timed({"1s": {}})) == ['SB215 states.A.after["1s"]']
    assert only_warnings(timed({"1s": "A"})) == ['SB215 states.A.after["1s"]']
    assert only_warnings(timed({"1s": {"target": "A", "reenter": True}})) == []
    assert only_warnings(timed({"1s": {"actions": {"log": "n"}}})) == []
    assert only_warnings(timed({"1s": [{"guard": "n"}, "B"]})) == []


def test_a_guarded_timer_that_is_the_only_way_out():
    guarded = {"1s": {"target": "B", "guard": "n"}}
    assert only_warnings(timed(guarded, on={})) == ['SB215 states.A.after["1s"]']
    assert only_warnings(timed(guarded)) == []


def test_a_timers_transition_after_one_without_a_guard():
    (line,) = found(timed({"1s": ["B", {"guard": "n", "target": "B"}]}))
    assert line == 'SB203 states.A.after["1s"][1]: never reached: t2 before it takes its timer without a guard'
