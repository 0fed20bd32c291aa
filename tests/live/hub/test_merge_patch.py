from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.live.hub.feeds import Inexpressible, changes, same
from tests.live.builders import merge

leaves = st.one_of(st.booleans(), st.integers(-3, 3), st.text("ab", max_size=2), st.just([]), st.just([1, None]))
with_null = st.one_of(st.none(), leaves)


def objects(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    keys = st.text("xyz", min_size=1, max_size=1)
    return st.dictionaries(keys, st.recursive(leaf, lambda inner: st.dictionaries(keys, inner, max_size=3)), max_size=3)


@given(objects(leaves), objects(leaves))
def test_merging_the_changes_into_the_old_value_gives_the_new_one(old: dict, new: dict) -> None:
    assert same(merge(old, changes(old, new)), new)


@given(objects(with_null), objects(with_null))
def test_with_nulls_it_is_either_right_or_refused(old: dict, new: dict) -> None:
    try:
        patch = changes(old, new)
    except Inexpressible:
        return
    assert same(merge(old, patch), new)


@given(objects(with_null))
def test_nothing_changed_is_an_empty_patch(value: dict) -> None:
    assert changes(value, value) == {}


def test_only_the_changed_parts_are_in_it() -> None:
    old = {"counts": {"New": 3, "Active": 1}, "oldest": {"New": 5}, "queues": {"todo": {"ready": 1, "dead": 0}}}
    new = {"counts": {"New": 2, "Active": 2}, "oldest": {}, "queues": {"todo": {"ready": 0, "dead": 0}}}
    assert changes(old, new) == {
        "counts": {"New": 2, "Active": 2},
        "oldest": {"New": None},
        "queues": {"todo": {"ready": 0}},
    }


def test_true_is_not_one() -> None:
    assert changes({"data": {"paid": 1, "list": [0]}}, {"data": {"paid": True, "list": [False]}}) == {
        "data": {"paid": True, "list": [False]}
    }


def test_a_field_that_became_null_cannot_be_said() -> None:
    with pytest.raises(Inexpressible):
        changes({"data": {"token": "X"}}, {"data": {"token": None}})


def test_merging_leaves_the_old_value_alone() -> None:
    old = {"a": {"b": 1}}
    assert merge(old, {"a": {"c": 2}}) == {"a": {"b": 1, "c": 2}}
    assert old == {"a": {"b": 1}}
