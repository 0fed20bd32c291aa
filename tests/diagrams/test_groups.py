"""States of a large flat machine in groups, by the first word of their names."""

from __future__ import annotations

import json

import pytest

from machines import diagrams
from machines.diagrams.layout import levels
from machines.diagrams.layout.state_tree import Tree
from machines.engine.definitions import Outline

from .places import faults
from .samples import flat, large, parsed, ring, texts

AREAS = ("payment", "Stock", "mail", "hold")


def named(form: str, count: int = 32) -> Outline:
    return ring([form.format(area=AREAS[n % len(AREAS)], n=n) for n in range(count)])


@pytest.mark.parametrize(
    "form", ["{area} {n}", "{area}_{n}", "{area}Number{n}", "order {area}.{n}", "order_{area}_{n}"]
)
def test_names_that_begin_alike_are_a_group(form: str) -> None:
    found = diagrams.group_by_prefix(named(form))
    assert found is not None
    groups = {state.name: state.children for state in found.states if state.type == diagrams.GROUP}
    assert list(groups) == ["payment *", "stock *", "mail *", "hold *"]
    assert all(len(members) == 8 for members in groups.values())


@pytest.mark.parametrize(
    "made",
    [named("{area} {n}", 24), ring([f"State {n}" for n in range(60)]), ring([f"s{n} x" for n in range(60)]), large()],
    ids=["small", "all begin alike", "none does", "nested"],
)
def test_no_groups_are_offered_where_they_say_nothing(made: Outline) -> None:
    assert diagrams.group_by_prefix(made) is None


def test_no_group_takes_the_name_of_a_state() -> None:
    assert diagrams.group_by_prefix(ring([*(s.name for s in named("{area} {n}").states), "mail *"])) is None


def test_a_folded_group_sums_its_states_and_leads_to_those_that_need_it() -> None:
    made = diagrams.group_by_prefix(named("{area} {n}"))
    assert made is not None
    drawn = parsed(diagrams.draw(made, folds=diagrams.top_level(made)))
    groups = [part for part in drawn.values() if "group" in part.get("class", "").split()]
    assert [part.get("data-state") for part in groups] == ["payment *", "stock *", "mail *", "hold *"]
    assert [part.get("class") for part in groups[:2]] == ["node state group initial folded", "node state group folded"]
    assert texts(groups[0], "detail") == ["8 states"]
    assert json.loads(groups[0].get("data-leaves", "")) == [f"payment {n}" for n in range(0, 32, 4)]
    lines = [part for part in drawn.values() if part.get("data-transition")]
    assert [len(part.get("data-transition", "").split()) for part in lines] == [8, 8, 8, 8]


def test_an_open_group_is_drawn_around_its_states() -> None:
    made = diagrams.group_by_prefix(flat(60))
    assert made is not None
    assert faults(Tree(made), levels.lay_out(Tree(made))) == []
    drawn = parsed(diagrams.draw(made, folds=sorted(diagrams.top_level(made))[1:]))
    assert [part.get("class") for part in drawn.values() if "cluster" in part.get("class", "")] == [
        "cluster state group"
    ]
    assert not [id for id in drawn if id.startswith("start-")], "no state of a group is its first"
