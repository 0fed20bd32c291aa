"""The same key twice is one call: the first outcome comes again and nothing changes."""

import pytest

from machines.engine import InstanceExists, Refused
from tests.engine.builders import NOW, counter, door, errand, publish, started
from tests.engine.dumps import unchanged

from .racing import in_processes, in_threads

DAY = 86_400_000  # ms an outcome is kept


def test_a_second_fire_gets_the_first_outcome(engine):
    started(engine, counter())
    first = engine.fire("counter", "x", "add", key="req-42", now=NOW + 1)
    engine.fire("counter", "x", "add")
    with unchanged(engine):
        again = engine.fire("counter", "x", "add", key="req-42", now=NOW + 9)
    assert (again.revision, again.data, again.outcome.transitions) == (first.revision, first.data, ["t1"])
    assert (first.outcome.replayed, again.outcome.replayed) == (False, True)
    assert engine.get("counter", "x").data == {"n": 2}


def test_it_comes_before_every_other_check(engine):
    started(engine, door(events={"open": {"payload": {}}}))
    engine.fire("door", "x", "open", key="k", expect=1)
    again = engine.fire("door", "x", "open", {"speed": 3}, key="k", expect=1)
    assert (again.state, again.outcome.replayed) == ("Open", True)


def test_another_key_or_none_is_another_call(engine):
    started(engine, counter())
    for key in ("a", "b", None, "", None):
        with_key = {"key": key}
        if engine.get("counter", "x").data["n"] < 3:
            assert not engine.fire("counter", "x", "add", **with_key).outcome.replayed
    assert engine.get("counter", "x").data["n"] == 3


def test_keys_belong_to_one_instance(engine):
    publish(engine, counter(), "x", "y", "x:1")
    engine.fire("counter", "x", "add", key="1:k")
    assert not engine.fire("counter", "y", "add", key="1:k").outcome.replayed
    assert not engine.fire("counter", "x:1", "add", key="k").outcome.replayed, "id and key do not run into each other"


def test_a_call_that_failed_is_tried_anew(engine):
    started(engine, counter(), data={"n": 3})
    with pytest.raises(Refused):
        engine.fire("counter", "x", "add", key="k")
    engine.force("counter", "x", "On", actor="a", reason="r", data={"n": 0})
    assert not engine.fire("counter", "x", "add", key="k").outcome.replayed


def test_an_outcome_is_kept_for_a_day(engine):
    started(engine, counter())
    engine.fire("counter", "x", "add", key="k")
    assert DAY - 10_000 < engine.client.pttl(engine.keys.partition("counter").outcome("x", "k")) <= DAY


def test_a_second_create_gets_the_first_outcome(engine):
    publish(engine, counter())
    first = engine.create("counter", "x", {"n": 1}, key="k", now=NOW)
    engine.fire("counter", "x", "add")
    with unchanged(engine):
        again = engine.create("counter", "x", {"n": 9}, key="k")
    assert (again.revision, again.data, again.created, again.outcome.replayed) == (1, first.data, NOW, True)
    with pytest.raises(InstanceExists):
        engine.create("counter", "x", key="other")


def test_a_create_that_comes_twice_does_not_bring_back_what_was_deleted(engine):
    publish(engine, door())
    engine.create("door", "x", key="k")
    engine.delete("door", "x")
    with unchanged(engine):
        assert engine.create("door", "x", key="k").outcome.replayed
    assert engine.counts("door")["Shut"] == 0


def test_a_fire_that_comes_again_after_the_instance_is_gone_gets_its_outcome(engine):
    started(engine, door())
    engine.fire("door", "x", "open", key="k")
    engine.delete("door", "x")
    with unchanged(engine):
        assert engine.fire("door", "x", "open", key="k").state == "Open"


def test_the_first_outcome_still_reads_after_a_new_version(engine):
    started(engine, counter())
    engine.fire("counter", "x", "add", key="k")
    engine.publish(counter(history=3))
    assert engine.fire("counter", "x", "add", key="k").version == 1


def test_a_create_and_a_fire_of_one_request_may_carry_the_same_key(engine):
    publish(engine, door())
    for replayed in (False, True):
        assert engine.create("door", "x", key="req-42").outcome.replayed is replayed
        assert engine.fire("door", "x", "open", key="req-42").outcome.replayed is replayed
    assert engine.get("door", "x").revision == 2


def test_work_is_enqueued_once(engine):
    started(engine, errand())
    for _ in range(3):
        engine.fire("errand", "x", "start", key="k")
    assert engine.queues("errand")["work"]["ready"] == 1


@pytest.mark.faults
def test_any_number_of_callers_make_one_step(engine, redis_url):
    started(engine, counter())
    results = in_threads([lambda: engine.fire("counter", "x", "add", key="k")] * 8)
    assert sorted(result.outcome.replayed for result in results) == [False] + [True] * 7
    outcomes = in_processes(engine, redis_url, [("fire", ["counter", "x", "add"], {"key": "other"})] * 20)
    assert outcomes == {"done": 60}
    assert engine.get("counter", "x").data["n"] == 2


@pytest.mark.parametrize("key", ["é" * 100, "a b", '{"k":1}', "a\nb", "😀"])
def test_a_key_is_any_short_text(engine, key):
    started(engine, counter())
    engine.fire("counter", "x", "add", key=key)
    assert engine.fire("counter", "x", "add", key=key).outcome.replayed


def test_a_key_as_long_as_python_lets_through_is_taken_whatever_its_alphabet(engine):
    started(engine, counter())
    assert engine.fire("counter", "x", "add", key="é" * 200).revision == 2
    assert engine.fire("counter", "x", "add", key="😀" * 200, actor="😀" * 150, reason="😀" * 1000).revision == 3


def test_an_instance_made_again_under_the_same_id_has_outcomes_of_its_own(engine):
    publish(engine, counter())
    engine.create("counter", "x", now=NOW)
    engine.fire("counter", "x", "add", key="k")
    engine.delete("counter", "x")
    engine.create("counter", "x", now=NOW + 1)
    fresh = engine.fire("counter", "x", "add", key="k")
    assert (fresh.revision, fresh.outcome.replayed) == (2, False)
    assert engine.fire("counter", "x", "add", key="k").outcome.replayed
