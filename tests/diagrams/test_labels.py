"""Labels: short lines to read at a glance."""

from __future__ import annotations

from machines.diagrams.layout.labels import event_text, state_details, state_name, transition_kind, transition_lines
from machines.diagrams.layout.routes import feeds
from machines.diagrams.layout.state_tree import Tree, main_line
from machines.engine.definitions import outline

from .samples import example, one_state


def lines(**transition: object) -> list[str]:
    state = one_state(on={"go": {"target": "B"} | transition}).states[0]
    return [line.text for line in transition_lines(state.transitions[0], state)]


def test_event_guard_and_actions_stand_in_that_order() -> None:
    shown = lines(guard="x > 3", actions=[{"set": {"x": "x + 1"}}, {"log": "x"}])
    assert shown == ["go", "[x > 3]", "/ x = x + 1", "/ log x"]


def test_long_guards_wrap_and_then_end_in_an_ellipsis() -> None:
    shown = lines(guard=" and ".join(f"x > {n}" for n in range(30)))
    assert len(shown) == 4
    assert all(len(line) <= 30 for line in shown)
    assert shown[-1].endswith("…")


def test_many_actions_are_counted() -> None:
    shown = lines(actions=[{"log": str(n)} for n in range(9)])
    assert shown[1:] == ["/ log 0", "/ log 1", "/ log 2", "/ log 3", "/ log 4", "+ 4 more"]


def test_a_transition_without_event_is_always() -> None:
    state = one_state(always={"target": "B", "guard": "x > 1"}).states[0]
    assert event_text(state.transitions[0], state) == "always"
    assert transition_kind(state.transitions[0]) == "always"


def test_work_with_an_id_of_its_own_is_named() -> None:
    state = one_state(invoke={"src": "f", "id": "job", "onDone": "B", "onError": "C"}).states[0]
    assert [event_text(transition, state) for transition in state.transitions] == ["done job", "error job"]


def test_entry_exit_and_work_stand_in_the_state() -> None:
    state = one_state(entry={"set": {"x": "1"}}, exit={"log": "x"}, invoke={"src": "f", "onDone": "B"}).states[0]
    assert [line.text for line in state_details(state)] == ["entry / x = 1", "exit / log x", "do / f"]


def test_long_names_wrap_into_three_lines() -> None:
    made = outline({"id": "m", "initial": "x" * 100, "states": {"x" * 100: {}}})
    shown = state_name(made.states[0])
    assert [len(line) for line in shown] == [24, 24, 24]
    assert shown[-1].endswith("…")


def test_states_that_enqueue_feed_the_queue_like_those_that_invoke() -> None:
    made = one_state(entry={"enqueue": {"src": "mail"}}, invoke={"src": "f", "queue": "work", "onDone": "B"})
    assert [(state.name, queue) for state, queue in feeds(Tree(made))] == [("A", "work"), ("A", "mail")]


def test_the_main_line_is_the_way_without_failures() -> None:
    made = outline(example("new_device"))
    assert main_line(Tree(made)) == [["start", "todo", "provision", "entitlement", "end"]]
