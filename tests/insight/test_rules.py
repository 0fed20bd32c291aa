"""What the engine itself did is no deviation, however a step went on by itself."""

from __future__ import annotations

from contextlib import suppress

import pytest

from machines.engine import DefinitionError, SignalboxError
from machines.insight import questions
from machines.insight.ingestion import InsightDuty
from machines.insight.records import Search
from machines.insight.rules import Rules
from tests.engine.compiled import charts
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
    while duty.run_once():
        pass
    found = questions.conformance(Search("order"), {1: RAISES}.get, store=store)
    assert store.ask("order", "SELECT source, target FROM {steps} WHERE source <> '' ORDER BY ALL") == [
        ("A", "C"), ("A", "D"),
    ]  # fmt: skip
    assert (found.fitting, found.deviations) == (2, ())
    changed = RAISES | {"states": RAISES["states"] | {"A": {"on": {"go": "D"}}}}
    found = questions.conformance(Search("order"), {1: changed}.get, store=store)
    assert [(one.target, one.event, one.example) for one in found.deviations] == [("C", "go", "a"), ("D", "look", "b")]


@pytest.mark.hostile
def test_no_step_of_a_chart_is_a_deviation(engine):
    together = 0
    for seed in range(40):
        writer = charts.Writer(seed)
        definition = writer.definition() | {"id": f"chart-{seed}", "history": 100}
        with suppress(DefinitionError):
            engine.publish(definition)
            engine.create(definition["id"], "a")
            for _ in range(25):
                with suppress(SignalboxError):
                    engine.fire(definition["id"], "a", writer.random.choice(charts.EVENTS))
            rules = Rules.of(definition)
            for step in engine.history(definition["id"], "a"):
                if step.source and not step.event.startswith("("):
                    together += len(step.source) > 1
                    assert rules.allows_step(step.source, step.configuration, step.event, step.transitions), step
    assert together > 30


def test_each_region_that_changed_has_a_transition_for_it(store, tell):
    region = {"initial": "Open", "states": {"Open": {"on": {"shut": "Shut"}}, "Shut": {"on": {"open": "Open"}}}}
    other = {"initial": "Dark", "states": {"Dark": {"on": {"light": "Lit"}}, "Lit": {"on": {"shut": "Dark"}}}}
    definition = {"id": "room", "initial": "All", "states": {
        "All": {"type": "parallel", "states": {"Door": region, "Lamp": other}, "on": {"leave": "Out"}},
        "Out": {"on": {"enter": "All", "peep": "Lit"}},
    }}  # fmt: skip
    rules = Rules.of(definition)
    open_dark, open_lit, shut_dark, shut_lit, out = (
        ["Open", "Dark"], ["Open", "Lit"], ["Shut", "Dark"], ["Shut", "Lit"], ["Out"])  # fmt: skip
    for source, target, event in (
        (open_dark, open_lit, "light"), (open_lit, shut_dark, "shut"), (open_dark, shut_dark, "shut"),
        (open_lit, out, "leave"), (out, open_dark, "enter"), (out, open_lit, "peep"),
    ):  # fmt: skip
        assert rules.allows_step(source, target, event, ()), (source, target, event)
    for source, target, event in (
        (open_dark, shut_lit, "shut"), (open_dark, open_lit, "shut"), (open_dark, shut_dark, "light"),
        (shut_dark, open_lit, "open"), (out, open_dark, "leave"), (out, shut_dark, "enter"),
        (open_dark, open_dark, "x"), (open_lit, ["Gone", "Lit"], "shut"),
    ):  # fmt: skip
        assert not rules.allows_step(source, target, event, ()), (source, target, event)
    ids = {(one.source, one.events): id for id, one in rules.transitions.items()}
    shut, lamp = ids["Open", ("shut",)], ids["Lit", ("shut",)]
    assert rules.allows_step(open_lit, shut_dark, "shut", (shut, lamp))
    assert not rules.allows_step(open_lit, shut_dark, "shut", (shut,))  # who put the light out?
    stops = {"a": [("Open, Dark", 0), ("Open, Lit", 1)], "b": [("Open, Dark", 0), ("Shut, Lit", 1)]}
    tell(stops)
    definition["states"]["All"]["states"]["Lamp"]["states"]["Dark"]["on"] = {"to.*": "Lit"}
    found = questions.conformance(Search("order"), {1: definition}.get, store=store)
    assert [(one.target, one.example) for one in found.deviations] == [("Shut, Lit", "b")]
    assert (found.fitting, found.unchecked) == (1, 0)


def test_recorded_transitions_have_to_begin_and_to_end_where_the_step_did():
    rules = Rules.of(RAISES)
    first, last = (next(id for id, one in rules.transitions.items() if one.source == state and name in one.events)
                   for state, name in (("A", "go"), ("B", "on")))  # fmt: skip
    assert rules.allows("A", "C", "go", (first, last))
    assert not rules.allows("A", "C", "go")
    assert not rules.allows("A", "C", "look", (first, last))
    assert not rules.allows("A", "D", "go", (first, last))
    assert not rules.allows("A", "C", "go", (last,))
