"""Questions on facts that are small enough to be counted by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from machines.insight import comparison, questions, selection
from machines.insight.comparison import compare, compare_shares, find_interval
from machines.insight.errors import BadSearch
from machines.insight.facts import CREATE, Case
from machines.insight.records import Search, Spread
from machines.insight.selection import select

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


@pytest.mark.parametrize(
    ("search", "found"), [(Search("order", versions=(9,)), 0), (Search("order", where=(("region", "x"),)), 0), (ALL, 2)]
)
def test_a_filter_that_finds_nothing_or_everything_has_every_answer(store, tell, search, found):
    tell({"a": SHORT, "b": LOOPED}, data='{"region": "eu"}')
    shares = questions.share_drift(search, "New", "Paid", 10**12, store=store)
    answers = [
        questions.paths(search, store=store), questions.durations(search, store=store),
        questions.bottlenecks(search, store=store), questions.people(search, "kind", store=store),
        questions.funnel(search, ["New", "Sent"], store=store), compare(search, ALL, store=store).first,
        questions.service_levels(search, {"New": 1}, store=store), questions.conformance(search, {}.get, store=store),
    ]  # fmt: skip
    assert [getattr(one, "extent", one).instances for one in answers] == [found] * 8
    assert (questions.list_instances(search, store=store).total, shares.count) == (found, 3 if found else 0)


def test_nothing_read_yet_is_an_answer(store):
    assert questions.paths(ALL, store=store).extent.read_up_to == 0
    assert questions.durations(ALL, store=store).states == ()


def test_a_funnel_counts_who_reaches_states_in_order_and_in_time(store, tell):
    tell({"a": SHORT, "b": LOOPED, "c": [("New", 0), ("Gone", 1)], "d": [("Sent", 0), ("New", 5)]})
    found = questions.funnel(ALL, ["New", "Paid", "Sent"], store=store)
    assert [stage.instances for stage in found.stages] == [4, 2, 2]
    assert (found.stages[1].share, found.stages[2].of_previous, found.stages[2].wait.p95) == (0.5, 1.0, 75_000)
    found = questions.funnel(ALL, ["New", "Paid", "Sent"], 40_000, store=store)
    assert [stage.instances for stage in found.stages] == [4, 2, 1]
    with pytest.raises(BadSearch):
        questions.funnel(ALL, ["New"], store=store)


def test_a_funnel_follows_the_order_of_steps_of_one_millisecond(store, tell):
    tell({"a": [("New", 0), ("Sent", 0), ("Paid", 0)]})
    reached = [[stage.instances for stage in questions.funnel(ALL, states, store=store).stages]
               for states in (["Paid", "Sent"], ["Sent", "Paid"], ["New", "Sent", "Paid"])]  # fmt: skip
    assert reached == [[1, 0], [1, 1], [1, 1, 1]]


def test_instances_of_a_stage_and_of_a_measure_match_the_figure(store, tell):
    tell({"a": SHORT, "b": LOOPED, "c": [("New", 0), ("Gone", 1)], "d": [("Sent", 0), ("New", 5)]}, actor="ann")
    tell({"e": SHORT}, actor="bob")
    some, stages = Search("order", actor="ann"), ["New", "Paid", "Sent"]
    for within in (None, 40_000):
        found = questions.funnel(some, stages, within, store=store).stages
        listed = [
            questions.list_instances(some, stages=stages[:number], within=within, store=store) for number in (1, 2, 3)
        ]
        assert [page.total for page in listed] == [stage.instances for stage in found]
    assert listed[-1].ids == ("a",)
    for one in questions.people(ALL, store=store).rows:
        page = questions.list_instances(ALL, measure=("actor", one.name), store=store)
        assert page.total == one.instances
    assert page.ids == ("e",)
    with pytest.raises(BadSearch, match="no measure"):
        questions.list_instances(ALL, measure=("n; DROP", "x"), store=store)
    with pytest.raises(BadSearch, match="at most 20"):
        questions.list_instances(ALL, stages=[f"S{number}" for number in range(21)], store=store)


def test_bottlenecks_add_up_stays_and_those_that_last(store, tell):
    tell({"a": SHORT})
    tell({"b": [("New", 0)]}, ended=False)
    found = questions.bottlenecks(ALL, now=1_100_000, store=store)
    assert [(one.state, one.total, one.waiting) for one in found.states] == [("New", 110_000, 1), ("Paid", 20_000, 0)]
    assert found.states[0].share == 110 / 130


def test_people_are_counted_by_what_is_asked(store, tell):
    tell({"a": SHORT}, actor="ann")
    tell({"b": SHORT, "c": SHORT}, actor="bob")
    found = questions.people(ALL, store=store)
    assert [(one.name, one.steps, one.instances) for one in found.rows] == [("bob", 6, 2), ("ann", 3, 1)]
    assert [one.name for one in questions.people(ALL, "kind", store=store).rows] == ["person", "creation"]
    few = questions.people(ALL, most=1, store=store)
    assert ([one.name for one in few.rows], few.extent.left_out, found.extent.left_out) == (["bob"], 1, 0)
    with pytest.raises(BadSearch, match="no measure"):
        questions.people(ALL, "n; DROP", store=store)


def test_service_levels_count_stays_above_a_limit_and_instances_that_are_late(store, tell):
    tell({"a": SHORT, "b": LOOPED})
    tell({"c": [("New", 0), ("Paid", 1)]}, ended=False)
    (found,) = questions.service_levels(ALL, {"Paid": 20_000}, now=1_030_000, store=store).levels
    assert (found.stays, found.missed, found.late) == (3, 1, 1)


def test_service_levels_count_each_state_of_regions(store, tell):
    ways = [("Start", 0), ("Pack, Bill", 1), ("Pack, Paid", 10), ("Sent, Paid", 15), ("Pack, Paid", 1), ("Done", 5)]
    tell({"a": ways, "b": ways[:5], "c": ways[:3]})
    tell({"d": ways[:4], "e": ways[:2]}, ended=False)
    limits = {"Start": 500, "Pack": 20_000, "Bill": 20_000, "Paid": 15_000}
    found = questions.service_levels(ALL, limits, now=1_028_000, store=store).levels
    assert [(one.state, one.stays, one.missed, one.late) for one in found] == [
        ("Start", 5, 5, 0), ("Pack", 4, 3, 1), ("Bill", 4, 0, 1), ("Paid", 1, 1, 1),
    ]  # fmt: skip
    (found,) = questions.service_levels(ALL, {"Pack": 27_000}, now=1_028_000, store=store).levels
    assert (found.missed, found.late) == (0, 0)


def test_a_comparison_has_each_state_of_regions(store, tell):
    tell({f"a{number}": [("Start", 0), ("Pack, Bill", 1), ("Pack, Paid", 2)] for number in range(30)})
    tell({f"b{number}": [("Start", 0), ("Pack, Bill", 1)] for number in range(30)}, version=2)
    found = compare(Search("order", versions=(1,)), Search("order", versions=(2,)), store=store)
    assert {row.name: (row.first, row.second) for row in found.states} == {
        "Start": (1, 1), "Pack": (1, 1), "Bill": (1, 1), "Paid": (1, 0), "Pack, Bill": (1, 1), "Pack, Paid": (1, 0),
    }  # fmt: skip
    assert [row.name for row in found.times] == ["Start"]


def test_instances_behind_a_figure_match_it(store, tell):
    tell({"a": SHORT, "b": SHORT, "c": LOOPED, "d": [("New", 0), ("Gone", 1)]})
    found = questions.paths(ALL, store=store)
    for state in found.states:
        assert questions.list_instances(ALL, state=state.state, store=store).total == state.instances
    for path in found.paths:
        assert questions.list_instances(ALL, path=path.states, store=store).total == path.count
    page = questions.list_instances(ALL, transition=("New", "Paid", "to.Paid"), limit=2, store=store)
    assert (page.total, page.ids, page.after) == (3, ("a", "b"), "b")
    assert questions.list_instances(ALL, transition=("New", "Paid", "to.Paid"), after="b", store=store).ids == ("c",)


@pytest.mark.parametrize(("target", "found"), [("Paid", (1.0, 4)), ("New", (0.75, 16))])
def test_a_share_of_the_steps_out_of_a_state_counts_none_that_stays_in_it(store, tell, target, found):
    tell({id: [("New", 0), ("New", 1), ("New", 1), ("New", 1), ("Paid", 1)] for id in "abcd"})
    drift = questions.share_drift(ALL, "New", target, 60_000, now=1_010_000, store=store)
    assert (drift.now, drift.count) == found


def test_an_entry_that_was_lost_is_counted_from_where_the_instance_was_seen(store):
    case = Case(0, "a", 1_000)
    steps = case.add([[1, 1_000, CREATE, "Start", "", 0], [2, 2_000, "go", "Pack, Bill", "", 0],
                      [3, 3_000, "go", "Sent, Bill", "", 0]], 1, {})  # fmt: skip
    case.close(6, "Pack, Bill", 90_000)
    store.append("order", store.manifest("order"), steps, [case.row()], number=1, marks={"0": 90_000})
    for limit, late in ((20_000, 0), (5_000, 1)):
        (found,) = questions.service_levels(ALL, {"Pack": limit}, now=100_000, store=store).levels
        assert (found.stays, found.late) == (1, late)


def test_drift_compares_the_latest_window_with_the_one_before(store, tell):
    tell({"a": [("New", 0), ("Paid", 10)]}, begin=1_000_000)
    tell({"b": [("New", 0), ("Paid", 50)]}, begin=1_050_000)
    found = questions.drift(Search("order"), "New", 0.95, 60_000, now=1_100_000, store=store)
    assert (found.now, found.before, found.count, found.count_before, found.ratio) == (50_000, 10_000, 1, 1, 5.0)


def test_conformance_names_steps_that_the_definition_lacks(store, tell):
    states = {
        "New": {"on": {"to.Paid": "Paid"}},
        "Paid": {"on": {"to.Sent": "Sent", "to.New": "Check"}},
        "Check": {"always": [{"target": "New", "guard": "True"}]},
        "Sent": {"type": "final"},
    }
    tell({"a": SHORT, "b": LOOPED, "c": [("New", 0), ("Gone", 1)]})
    tell({"d": SHORT}, version=2)
    found = questions.conformance(ALL, {1: {"id": "order", "initial": "New", "states": states}}.get, store=store)
    assert [(one.source, one.target, one.event, one.count, one.example) for one in found.deviations] == [
        ("New", "Gone", "to.Gone", 1, "c")
    ]
    assert (found.fitting, found.unchecked) == (3, 2)


def test_an_answer_has_some_rows_and_counts_the_others(store, tell, monkeypatch):
    tell({"a": SHORT, "b": LOOPED, "c": [("New", 0), ("Gone", 1)]})
    monkeypatch.setattr(questions, "MOST_ROWS", 2)
    found = questions.paths(ALL, store=store)
    assert ([one.state for one in found.states], len(found.transitions)) == (["New", "Paid"], 2)
    assert found.extent.left_out == 2 + 2
    found = compare(ALL, ALL, store=store)
    assert (len(found.states), len(found.transitions), found.first.left_out) == (2, 2, 4)
    monkeypatch.setattr(questions, "MOST_ROWS", 1)
    assert questions.durations(ALL, store=store).extent.left_out == 1
    assert questions.bottlenecks(ALL, store=store).extent.left_out == 1


def test_conformance_takes_many_kinds_of_deviation(store, tell):
    """A look at each kind by itself would not end within ``LONGEST``."""
    tell({f"i{n}": [("New", 0), (f"Gone{n}", 1)] for n in range(5_000)})
    definition = {"id": "order", "initial": "New", "states": {"New": {}}}
    found = questions.conformance(ALL, {1: definition}.get, store=store)
    assert (found.fitting, len(found.deviations), found.deviations[-1].example != "") == (0, 100, True)


def test_a_comparison_says_what_is_noise(store, tell):
    fast, slow = [("New", 0), ("Paid", 10)], [("New", 0), ("Gone", 99)]
    tell({f"a{n}": fast if n % 10 else slow for n in range(200)})
    tell({f"b{n}": fast if n % 2 else slow for n in range(200)}, version=2)
    tell({f"c{n}": fast if n % 11 else slow for n in range(200)}, version=3)
    one, two, three = (Search("order", versions=(n,)) for n in (1, 2, 3))
    gone = next(d for d in compare(one, two, store=store).transitions if d.target == "Gone")
    assert (gone.first, gone.second, gone.is_noise) == (0.1, 0.5, False)
    assert gone.low < 0.4 < gone.high
    assert all(d.is_noise for d in compare(one, three, store=store).transitions)
    tell({f"d{n}": slow for n in range(200)}, version=4)
    (time,) = compare(one, Search("order", versions=(4,)), store=store).times
    assert (time.name, time.first, time.second, time.is_noise) == ("New", 10_000, 99_000, False)


def test_facts_are_read_again_where_the_filter_or_the_facts_changed(store, tell, monkeypatch):
    tell({"a": SHORT, "b": LOOPED})
    before, read = compare(ALL, ALL, store=store), []
    ask = store.ask
    monkeypatch.setattr(store, "ask", lambda *given, **options: read.append(given) or ask(*given, **options))
    assert compare(ALL, ALL, store=store) == before
    assert read == []
    assert compare(Search("order", state="Sent"), ALL, store=store).second == before.second
    of_one_side = len(read)
    later = store.append("order", store.manifest("order"), [], [], marks={"0": 10**12})
    assert compare(ALL, ALL, store=store).first.read_up_to == later.read_up_to == 10**12
    read.clear()
    tell({"c": SHORT})
    assert compare(ALL, ALL, store=store).second.instances == 3
    assert len(read) == of_one_side
    found = questions.paths(ALL, store=store)
    read.clear()
    assert questions.paths(ALL, store=store) == found
    assert read == []
    questions.paths(ALL, most=1, store=store)
    assert read


def test_a_state_that_was_erased_meanwhile_has_no_median(store, tell):
    tell({"a": SHORT})
    found = comparison._find_medians(select(Search("order"), store), Counter({"New": 1, "Erased": 3}))
    assert list(found) == ["New"]


def test_intervals_are_those_of_the_literature():
    """Newcombe 1998, table II, example a: 56/70 and 48/80; Wilson's interval of 81/263 from the same."""
    assert find_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    found = compare_shares("a", (48, 80), (56, 70))
    assert (found.low, found.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_a_question_that_takes_too_long_is_ended(store, tell, monkeypatch):
    tell({"a": SHORT})
    monkeypatch.setattr(selection, "LONGEST", 0.2)
    heavy = "SELECT sum(hash(a.range + b.range)) FROM range(9999999) a, range({}) b"
    chosen = select(ALL, store)
    for count in (1000, 10):  # a question has one time for all that it asks
        with pytest.raises(BadSearch, match="too long: ask about fewer"):
            chosen.ask(heavy.format(count))
    assert select(ALL, store, is_limited=False).ask(heavy.format(10))


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: questions.paths(Search("order", versions=(99_999_999_999,)), store=store),
        lambda store: questions.paths(Search("order", where=(('a"b', "x"),)), store=store),
        lambda store: questions.paths(Search("order", begin=10**40), store=store),
        lambda store: questions.paths(Search("order", state="\ud800"), store=store),
        lambda store: questions.service_levels(ALL, {"New": 10**40}, store=store),
        lambda store: questions.funnel(ALL, ["New", "Paid"], 10**40, store=store),
        lambda store: questions.list_instances(ALL, path=["\ud800"], store=store),
        lambda store: questions.list_instances(ALL, after="\ud800", store=store),
    ],
)
def test_what_no_fact_can_be_is_a_wrong_search_and_no_damage(store, tell, ask):
    tell({"ä": SHORT})
    with pytest.raises(BadSearch):
        ask(store)
