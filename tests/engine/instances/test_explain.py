"""explain: what fire would do, and why; the same code without the commit."""

import pytest

from machines.engine import BadInput, BadPayload, Refused, UnknownInstance, UnknownMachine
from tests.engine.builders import NOW, counter, door, errand, machine, publish, started
from tests.engine.dumps import unchanged


def guarded(engine, guard, **context):
    on = {"go": {"guard": guard, "target": "B"}}
    started(engine, machine("m", {"A": {"on": on}, "B": {}}, **({"context": context} if context else {})))


def reasons(engine, payload=None):
    """The texts of what decided the one candidate."""
    return [str(because) for because in engine.explain("m", "x", "go", payload, now=NOW).candidates[0].because]


def test_it_changes_nothing(engine):
    started(engine, errand())
    with unchanged(engine):
        assert engine.explain("errand", "x", "start").taken
        assert not engine.explain("errand", "x", "abandon").taken


def test_it_shows_the_instance_as_it_would_be(engine):
    started(engine, counter())
    seen = engine.explain("counter", "x", "add")
    assert seen.outcome == {"configuration": ["On"], "data": {"n": 1}, "transitions": ["t1"]}
    assert (seen.revision, seen.state, seen.why, str(seen)) == (1, "On", None, "event 'add' is taken in state On")
    assert engine.explain("counter", "x", "stop").outcome["configuration"] == ["Off"]


def test_it_agrees_with_the_refusal_of_fire(engine):
    started(engine, counter(), data={"n": 3})
    seen = engine.explain("counter", "x", "add", now=NOW)
    with pytest.raises(Refused) as caught:
        engine.fire("counter", "x", "add", now=NOW)
    assert caught.value.explanation == seen
    assert caught.value.candidates == seen.candidates


def test_a_state_that_does_not_listen_and_an_event_nobody_knows_are_told_apart(engine):
    started(engine, door())
    assert engine.explain("door", "x", "close").why == "no transition"
    unknown = engine.explain("door", "x", "slam")
    assert (unknown.why, unknown.known_events) == ("unknown event", ["close", "open"])
    started(engine, counter(), "y")
    engine.fire("counter", "y", "stop")
    assert engine.explain("counter", "y", "anything").why == "final"


def test_an_and_names_its_first_part_that_does_not_hold(engine):
    guarded(engine, "a > 0 and b > 0 and c > 0", a=1, b=0, c=0)
    assert reasons(engine) == ["b > 0 is false: b = 0"]


def test_an_or_names_all_its_parts(engine):
    guarded(engine, "a > 0 or b > 0", a=0, b=-1)
    assert reasons(engine) == ["a > 0 is false: a = 0", "b > 0 is false: b = -1"]


def test_a_not_names_what_holds(engine):
    guarded(engine, "not a", a=True)
    assert reasons(engine) == ["a is true: a = true"]


def test_a_guard_that_fails_says_how(engine):
    guarded(engine, "event.n < a", a=3)
    assert reasons(engine, {"n": "3"}) == ['event.n < a fails: cannot order string and number: a = 3, event.n = "3"']
    assert reasons(engine) == ["event.n < a fails: cannot order null and number: a = 3, event.n = nothing"]
    assert engine.explain("m", "x", "go").candidates[0].verdict == "error"


def test_values_of_a_guard_that_builds_objects_are_shown(engine):
    guarded(engine, "{'data': a, 'get': event.b, 'now': 1} == c", a=1, c={"x": 1})
    (because,) = engine.explain("m", "x", "go", {"b": 2}).candidates[0].because
    assert because.values == {"a": 1, "event.b": 2, "c": {"x": 1}}


def test_the_clock_is_shown_in_seconds(engine):
    guarded(engine, "now > a", a=NOW)
    assert reasons(engine) == [f"now > a is false: a = {NOW}, now = {NOW // 1000}"]


def test_every_candidate_is_listed_with_its_verdict(engine):
    on = {"go": [{"guard": "n > 1", "target": "B"}, {"guard": "n + event.y == 1"}, {"guard": "n < 1"}, "B"], "*": "B"}
    started(engine, machine("m", {"A": {"on": on}, "B": {}}, context={"n": 0}))
    seen = engine.explain("m", "x", "go")
    found = [(c.id, c.target, c.guard, c.verdict) for c in seen.candidates]
    assert found == [
        ("t1", "B", "n > 1", "guard"),
        ("t2", None, "n + event.y == 1", "error"),
        ("t3", None, "n < 1", "taken"),
        ("t4", "B", None, "not reached"),
        ("t5", "B", None, "not reached"),
    ]


def test_an_action_that_fails_is_told_as_such(engine):
    go = {"actions": [{"set": {"n": "5"}}, {"set": {"n": "1 / 0"}}]}
    started(engine, machine("m", {"A": {"on": {"go": go}}}, context={"n": 1}))
    seen = engine.explain("m", "x", "go")
    assert (seen.taken, seen.why, seen.error, seen.outcome) == (False, "error", "division by zero", None)
    assert str(seen) == "event 'go' is refused in state A: division by zero"


def test_a_jobs_input_that_fails_is_told_too(engine):
    started(engine, errand(input={"n": "1 / 0"}))
    assert engine.explain("errand", "x", "start").error == "division by zero"


def test_random_values_are_those_the_guard_drew(engine):
    """A guard that holds half of the time is explained by the very number that decided it."""
    guarded(engine, "random() < 0.5")
    for at in range(NOW, NOW + 40):
        seen = engine.explain("m", "x", "go", now=at)
        verdicts = [because.verdict for because in seen.candidates[0].because]
        assert verdicts == ([] if seen.taken else ["false"])


def test_explain_and_fire_draw_the_same_at_the_same_moment(engine):
    go = {"actions": {"set": {"token": "random_token(12)"}}}
    started(engine, machine("m", {"A": {"on": {"go": go}}}, context={"token": ""}))
    seen = engine.explain("m", "x", "go", now=NOW).outcome["data"]
    assert engine.fire("m", "x", "go", now=NOW).data == seen


def test_data_nested_as_deep_as_it_may_be_is_shown(engine):
    deep = []
    for _ in range(30):
        deep = [deep]
    guarded(engine, "event.x == a", a={})
    engine.force("m", "x", "A", actor="a", reason="deep", data={"a": {"deep": deep[0]}})
    with pytest.raises(Refused) as caught:
        engine.fire("m", "x", "go", {"x": deep})
    assert caught.value.candidates[0].because[0].values == {"a": {"deep": deep[0]}, "event.x": deep}


def test_a_guard_of_constants_is_explained_by_its_text(engine):
    guarded(engine, "1 == 2")
    assert reasons(engine) == ["1 == 2 is false"]


def test_what_is_unknown_or_does_not_fit_is_an_error_as_in_fire(engine):
    started(engine, door(events={"open": {"payload": {}}}))
    with pytest.raises(UnknownInstance):
        engine.explain("door", "y", "open")
    with pytest.raises(UnknownMachine):
        engine.explain("gate", "y", "open")
    with pytest.raises(BadPayload):
        engine.explain("door", "x", "open", {"speed": 3})
    with pytest.raises(BadInput):
        engine.explain("door", "x", "done.invoke.x")
    publish(engine, door())


def test_it_can_be_told_as_plain_data(engine):
    started(engine, counter(), data={"n": 3})
    told = engine.explain("counter", "x", "add").as_dict()
    assert told["text"] == "event 'add' is refused in state On: t1 (stays): n < 3 is false: n = 3"
    assert told["candidates"][0]["because"][0]["values"] == {"n": 3}
