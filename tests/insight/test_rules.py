"""What the engine itself did is no deviation, however a step went on by itself."""

from __future__ import annotations

from machines.insight import questions
from machines.insight.ingestion import InsightDuty
from machines.insight.records import Search
from machines.insight.rules import Rules
from tests.retention.conftest import Restless

RAISES = {
    "id": "order", "initial": "A",
    "states": {
        "A": {"on": {"go": "B", "look": {"actions": {"raise": "skip"}}, "skip": "D"}},
        "B": {"entry": [{"raise": "on"}], "on": {"on": "C"}},
        "C": {"type": "final"},
        "D": {"type": "final"},
    },
}  # fmt: skip


def test_a_step_that_an_event_of_its_own_took_further_is_no_deviation(engine, store, transactional_db):
    engine.publish(RAISES)
    for id, event in (("a", "go"), ("b", "look")):
        engine.create("order", id)
        engine.fire("order", id, event)
    duty = InsightDuty(engine, store=store, share=Restless())
    while duty.once():
        pass
    found = questions.conformance(Search("order"), {1: RAISES}.get, store=store)
    assert store.ask("order", "SELECT source, target FROM {steps} WHERE source <> '' ORDER BY ALL") == [
        ("A", "C"), ("A", "D"),
    ]  # fmt: skip
    assert (found.fitting, found.deviations) == (2, ())
    changed = RAISES | {"states": RAISES["states"] | {"A": {"on": {"go": "D"}}}}
    found = questions.conformance(Search("order"), {1: changed}.get, store=store)
    assert [(one.target, one.event, one.example) for one in found.deviations] == [("C", "go", "a"), ("D", "look", "b")]


def test_recorded_transitions_have_to_begin_and_to_end_where_the_step_did():
    rules = Rules.of(RAISES)
    first, last = (next(id for id, one in rules.transitions.items() if one.source == state and name in one.events)
                   for state, name in (("A", "go"), ("B", "on")))  # fmt: skip
    assert rules.allows("A", "C", "go", (first, last))
    assert not rules.allows("A", "C", "go")
    assert not rules.allows("A", "C", "look", (first, last))
    assert not rules.allows("A", "D", "go", (first, last))
    assert not rules.allows("A", "C", "go", (last,))
