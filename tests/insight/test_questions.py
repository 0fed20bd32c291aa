"""Questions on facts that are small enough to be counted by hand."""

from __future__ import annotations

from machines.insight import questions
from machines.insight.records import Search, Spread

ALL = Search("order")
SHORT = [("New", 0), ("Paid", 10), ("Sent", 20)]
LOOPED = [("New", 0), ("Paid", 10), ("New", 5), ("Paid", 30), ("Sent", 40)]


def test_paths_give_each_state_and_transition_its_share_and_times(store, tell):
    tell({"a": SHORT, "b": SHORT, "c": LOOPED})
    tell({"d": [("New", 0), ("Gone", 1)]})
    found = questions.paths(ALL, store=store)
    assert (found.extent.instances, found.extent.steps, found.extent.lost) == (4, 13, 0)
    states = {one.state: one for one in found.states}
    assert (states["Paid"].instances, states["Paid"].share, states["Paid"].entries) == (3, 0.75, 4)
    assert (states["Sent"].here, states["Gone"].here, states["New"].here) == (3, 1, 0)
    assert states["Paid"].stay == Spread(4, 20_000, 40_000, 40_000, 85_000)
    edges = {(one.source, one.target): one for one in found.transitions}
    assert edges["New", "Paid"].count == 4
    assert edges["New", "Paid"].share == 0.8
    assert edges["New", "Paid"].keys == ("1:New-Paid",)
    assert edges["Paid", "New"].wait.p50 == 5_000


def test_loops_are_counted_and_not_unrolled(store, tell):
    tell({"a": SHORT, "b": LOOPED, "c": [("New", 0), ("Gone", 1)]})
    found = questions.paths(ALL, most=1, store=store)
    assert [path.states for path in found.paths] == [("New", "Paid", "Sent")]
    assert (found.paths[0].count, found.paths[0].looped, found.paths[0].loops) == (2, 1, 1)
    assert (found.paths[0].duration.count, found.paths[0].duration.p95) == (2, 85_000)
    assert (found.rest, found.rest_paths) == (1, 1)


def test_durations_are_distributions(store, tell):
    tell({"a": SHORT, "b": LOOPED})
    found = questions.durations(ALL, store=store)
    assert [one.state for one in found.states] == ["Paid", "New"]
    paid = found.states[0]
    assert sum(bucket.count for bucket in paid.buckets) == paid.stay.count == 3
    assert all(bucket.low < bucket.high for bucket in paid.buckets)
    assert [bucket.count for bucket in paid.buckets if bucket.low <= 5_000 < bucket.high] == [1]


def test_nothing_read_yet_is_an_answer(store):
    assert questions.paths(ALL, store=store).extent.read_up_to == 0
    assert questions.durations(ALL, store=store).states == ()
