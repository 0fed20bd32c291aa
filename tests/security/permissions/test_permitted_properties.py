"""Random machines whose transitions are kept for groups, random people, random times: nothing else is ever committed.

The definition itself says which transitions were open to whom; what the engine explains for the same moment says that
nothing was refused beyond that.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machines.engine import Engine, NeedsApproval, NotAllowed, Permit, Refused
from machines.engine.definitions import check, outline
from tests.conftest import remove
from tests.engine.builders import NOW
from tests.engine.interpreter import strategies as flat
from tests.engine.interpreter.charts import strategies as charted
from tests.engine.interpreter.charts.profile import RUN, TIMES
from tests.engine.interpreter.charts.rendering import definition_of

pytestmark = [pytest.mark.redis, pytest.mark.timeout(180 * TIMES)]

GROUPS = ("board", "clerks", "treasury")
GUARDS = ("random() < 0.5", "now % 2 == 0", "random() < 0.2 or now % 3 == 0")
FROM_OUTSIDE = ("a", "b", "c.d", "c", "c.*")  # of charts: what no chart raises or sends itself
some_groups = st.lists(st.sampled_from(GROUPS), min_size=1, max_size=2, unique=True)


def kept(draw: st.DrawFn, body: dict[str, Any], events: tuple[str, ...]) -> None:
    """Keep some transitions on these events for groups, and have some of them hang on chance and time."""
    for event, ways in body.get("on", {}).items():
        for way in ways if event in events else ():
            if draw(st.sampled_from([True, True, True, False])):
                way["allow"] = draw(some_groups)
            if draw(st.sampled_from([True, False, False])):
                way["guard"] = draw(st.sampled_from(GUARDS))
    for inner in body.get("states", {}).values():
        kept(draw, inner, events)


@st.composite
def flat_machines(draw: st.DrawFn) -> dict[str, Any]:
    """``b`` and ``c`` may be raised by its actions, ``a`` comes from outside alone."""
    made = draw(flat.definitions())
    kept(draw, made, ("a",))
    made["approval"] = draw(st.sampled_from([[], [], ["fire:a"]]))
    return made


@st.composite
def chart_machines(draw: st.DrawFn) -> dict[str, Any]:
    made = definition_of(draw(charted.charts(charted.Kind(work=True, failures=True, raises=draw(st.booleans())))))
    kept(draw, made, FROM_OUTSIDE)
    made["approval"] = draw(st.sampled_from([[], [], ["fire:a"], ["fire:c"]]))
    return made


def publishable(made: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return made.filter(lambda one: not any(finding.is_error for finding in check(one)))


APPROVALS = st.sampled_from(["none", "any", "seen", "other"])
PEOPLE = st.sampled_from([None, *(frozenset(groups) for n in range(3) for groups in combinations(GROUPS, n))])


def calls(events: tuple[str, ...]) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    call = st.tuples(st.sampled_from(events), charted.PAYLOADS, PEOPLE, APPROVALS, st.integers(0, 5000))
    return st.lists(call, min_size=10, max_size=16)


class House:
    """One instance, and everybody who sends it something."""

    def __init__(self, engine: Engine, definition: dict[str, Any]) -> None:
        self.engine, self.name, self.now = engine, definition["id"], NOW
        engine.publish(definition)
        found = outline(definition)
        self.allow = {way.id: set(way.allow) for state in found.states for way in state.transitions if way.allow}
        self.approval = [name.removeprefix("fire:") for name in found.approval]

    def begin(self) -> bool:
        try:
            self.engine.create(self.name, "x", now=self.now)
        except Refused:
            return False
        return True

    def fire(self, event: str, payload: Any, groups: frozenset[str] | None, approval: str, later: int) -> None:
        looked = self.engine.explain(self.name, "x", event, payload, now=self.now)
        self.now += later
        seen = self.engine.explain(self.name, "x", event, payload, now=self.now)
        chosen = [one for one in seen.candidates if one.verdict == "taken"]
        barred = {one.id for one in chosen if groups is not None and one.allow and groups.isdisjoint(one.allow)}
        permit = self.permit(groups, approval, event, looked)
        takes_two = any(event == name or event.startswith(f"{name}.") for name in self.approval)
        before = self.engine.get(self.name, "x")
        try:
            after = self.engine.fire(self.name, "x", event, payload, actor="ann", now=self.now, permit=permit)
        except (NotAllowed, NeedsApproval, Refused) as error:
            assert self.engine.get(self.name, "x") == before
            self.explained(error, seen, barred, takes_two, approval)
            return
        assert not barred
        for id in after.outcome.transitions:
            assert groups is None or id not in self.allow or self.allow[id] & groups, id
        if takes_two:
            assert permit.action == f"fire:{event}"
            assert permit.transitions is None or set(permit.transitions) == {one.id for one in chosen}
        assert after.outcome.transitions == seen.outcome["transitions"]

    def explained(self, error: Exception, seen: Any, barred: set[str], takes_two: bool, approval: str) -> None:
        """It was refused for a reason that the definition gives."""
        if isinstance(error, NotAllowed):
            assert error.transition in barred
            assert set(error.groups) == self.allow[error.transition]
        elif isinstance(error, NeedsApproval):
            assert takes_two
            assert seen.taken
            assert approval != "any"
            assert not barred
        else:
            assert not seen.taken

    @staticmethod
    def permit(groups: frozenset[str] | None, approval: str, event: str, looked: Any) -> Permit:
        """``seen``: a second person has approved what it would have taken a moment ago."""
        permit = Permit(groups)
        if approval == "none":
            return permit
        taken = tuple(one.id for one in looked.candidates if one.verdict == "taken")
        what = {"transitions": taken, "version": 1} if approval == "seen" else {}
        return permit.approve("fire:other" if approval == "other" else f"fire:{event}", "bob", **what)


@contextmanager
def house(url: str, definition: dict[str, Any]) -> Iterator[House]:
    engine = Engine.from_url(url, prefix=f"t{secrets.token_hex(4)}:")
    try:
        yield House(engine, definition)
    finally:
        remove(engine.client, engine.keys.prefix)
        engine.client.close()


def lived(url: str, definition: dict[str, Any], made: list[tuple[Any, ...]]) -> None:
    with house(url, definition) as here:
        if here.begin():
            for call in made:
                here.fire(*call)


@settings(RUN, max_examples=20 * TIMES)
@given(definition=publishable(flat_machines()), made=calls(("a", "a", "b")))
def test_a_flat_machine_commits_nothing_that_is_kept_for_others(redis_url, definition, made):
    lived(redis_url, definition, made)


@settings(RUN, max_examples=20 * TIMES)
@given(definition=publishable(chart_machines()), made=calls(charted.EVENTS))
def test_nor_does_a_chart_in_any_region(redis_url, definition, made):
    lived(redis_url, definition, made)
