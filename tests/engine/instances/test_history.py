"""history: the steps of one instance, newest first, and as many as its machine keeps."""

import pytest

from machines.engine import BadInput, UnknownInstance
from tests.cases import for_each
from tests.engine.builders import NOW, counter, door, fields, machine, publish, started

SLACK = 16  # steps the list may run over before it is cut: cutting at each step costs time


def clock(**top):
    tick = {"tick": {"actions": {"set": {"n": "n + 1"}}}}
    return machine("clock", {"Runs": {"on": tick}}, context={"n": 0}, **top)


def ticking(engine, times, **top):
    started(engine, clock(**top))
    engine.fire_many([("clock", "x", "tick")] * times)


def versions(engine, **options):
    return [step.revision for step in engine.history("clock", "x", **options)]


def test_a_step_tells_what_happened(engine):
    started(engine, counter())
    engine.fire("counter", "x", "add", {"why": "é"}, actor="alice", reason="because", now=NOW + 3)
    newest, first = engine.history("counter", "x")
    assert newest.as_dict() == {
        "revision": 2,
        "at": NOW + 3,
        "event": "add",
        "source": ["On"],
        "configuration": ["On"],
        "transitions": ["t1"],
        "actor": "alice",
        "reason": "because",
        "payload": {"why": "é"},
        "changes": {"n": 1},
        "version": 1,
    }
    assert (first.event, first.changes, first.source) == ("(create)", {"n": 0}, None)


def test_changes_hold_only_what_changed(engine):
    go = {"actions": [{"set": {"a": "a", "b": "'new'"}}, {"unset": "c"}, {"unset": "d"}]}
    context = fields(a={"default": 1}, b="string", c={"default": [1]}, d="string")
    started(engine, machine("m", {"A": {"on": {"go": go}}}, context=context))
    engine.fire("m", "x", "go")
    assert engine.history("m", "x")[0].changes == {"b": "new", "c": None}


def test_newest_first_and_no_more_than_asked_for(engine):
    ticking(engine, 9)
    assert versions(engine) == [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
    assert versions(engine, limit=3) == [10, 9, 8]


def test_pages_follow_each_other_without_gap_or_overlap(engine):
    ticking(engine, 24)
    seen, before = [], None
    while page := engine.history("clock", "x", limit=10, before=before):
        assert all(step.source == ["Runs"] for step in page if step.revision > 1)
        seen += [step.revision for step in page]
        before = page[-1].revision
    assert seen == list(range(25, 0, -1))


def test_a_page_stays_where_it_is_while_the_instance_moves(engine):
    ticking(engine, 10)
    page = versions(engine, limit=3, before=8)
    engine.fire_many([("clock", "x", "tick")] * 5)
    assert versions(engine, limit=3, before=8) == page == [7, 6, 5]
    assert versions(engine, before=1) == []
    assert versions(engine, before=100)[0] == 16


@pytest.mark.parametrize("keep", [1, 5, 40])
def test_it_is_capped(engine, keep):
    ticking(engine, 100, history=keep)
    length = engine.client.llen(engine.keys.partition("clock").history("x"))
    assert keep <= length <= keep + SLACK
    assert versions(engine)[:keep] == list(range(101, 101 - keep, -1))


@pytest.mark.parametrize("keep", [1, 5])
def test_a_step_that_is_not_compiled_cuts_off_the_oldest(engine, keep):
    started(engine, clock(history=keep))
    for _ in range(keep + SLACK):
        engine.force("clock", "x", "Runs", actor="ada", reason="again")
    newest = engine.get("clock", "x").revision
    assert versions(engine, limit=100) == list(range(newest, newest - keep, -1))


def test_the_oldest_step_that_is_kept_does_not_know_its_source(engine):
    ticking(engine, 100, history=5)
    *_, oldest = engine.history("clock", "x", limit=1000)
    assert oldest.source is None
    assert oldest.revision > 1


def test_none_is_kept_where_none_is_wanted(engine):
    ticking(engine, 3, history=0)
    assert versions(engine) == []
    assert engine.get("clock", "x").revision == 4


def test_a_large_payload_is_not_kept(engine):
    started(engine, door())
    engine.fire("door", "x", "open", {"text": "é" * 2000})
    engine.fire("door", "x", "close", {"text": "é" * 400, "n": [1, {}, []]})
    newest, before, _ = engine.history("door", "x")
    assert (newest.payload, before.payload) == ({"text": "é" * 400, "n": [1, {}, []]}, {})


def test_a_limit_that_is_none_is_bad_input(engine):
    started(engine, door())

    @for_each("limit", [0, -1, 10_001, "3", 1.5, None, True])
    def check(limit):
        with pytest.raises(BadInput, match="limit is a whole number from 1 to 10000"):
            engine.history("door", "x", limit=limit)

    check()


def test_before_is_a_version(engine):
    started(engine, door())
    with pytest.raises(BadInput, match="before is a whole number"):
        engine.history("door", "x", before="3")


def test_an_unknown_instance_has_none(engine):
    publish(engine, door())
    with pytest.raises(UnknownInstance):
        engine.history("door", "y")
