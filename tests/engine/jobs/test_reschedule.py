"""Jobs that an operator delays, or moves to another queue."""

from collections import Counter

import pytest

from machines.engine import BadInput
from tests.cases import for_each
from tests.engine.builders import NOW, door, machine, publish
from tests.engine.dumps import unchanged

from .group_members import list_wrong_members
from .queueing import busy, places, take

WHO = {"actor": "ann", "reason": "because"}


@pytest.fixture
def yard(engine):
    publish(engine, door(queues={"work": {"groups": {"concurrency": 1}}, "other": {"groups": {"concurrency": 2}}}))
    return engine


def put(engine, queue="work", count=1, **facts):
    item = {"machine": "door", "src": "work", "queue": queue, "now": NOW}
    return engine.enqueue_many([item | facts] * count)


def depths(engine, name="door"):
    return {queue: {place: n for place, n in at.items() if n} for queue, at in engine.queues(name).items()}


def test_jobs_wait_until_a_time(yard):
    ready, delayed = *put(yard), *put(yard, delay=50)
    for job in (ready, delayed):
        assert yard.reschedule("door", job, until=NOW + 5000, now=NOW, **WHO)
    assert not yard.take("door", "work", "w", count=5, now=NOW + 4999)
    found = yard.take("door", "work", "w", count=5, now=NOW + 5000)
    assert [(job.id, job.due) for job in found] == [("0-1", NOW + 5000), ("0-2", NOW + 5000)]


def test_jobs_move_to_another_queue_with_state_and_attempts(yard):
    put(yard, count=2, attempts=5)
    (job,) = yard.take("door", "work", "w", now=NOW)
    yard.fail(job, "no", now=NOW)
    assert yard.reschedule("door", job.id, queue="other", now=NOW, **WHO)
    assert yard.reschedule("door", "0-2", queue="other", now=NOW, **WHO)
    assert depths(yard) == {"work": {}, "other": {"ready": 1, "delayed": 1}}
    moved = yard.job("door", job.id)
    assert (moved.queue, moved.place, moved.attempt, moved.attempts, moved.error) == ("other", "delayed", 1, 5, "no")
    assert {taken.id for taken in yard.take("door", "other", "w", count=2, now=moved.due)} == {"0-1", "0-2"}
    stats = yard.stats("door")
    assert (stats["work"].enqueued, stats["other"].enqueued) == (2, 2), "both only grow"


def test_limits_of_groups_hold_where_jobs_come_and_are_free_where_they_leave(yard):
    put(yard, count=5, group="a")
    put(yard, count=5, group="b")
    for number in range(2, 6):
        assert yard.reschedule("door", f"0-{number}", queue="other", now=NOW, **WHO)
    keys = yard.keys.partition("door")
    assert [list_wrong_members(yard.client, keys, queue) for queue in ("work", "other")] == [[], []]
    assert [len(yard.take("door", queue, "w", count=9, now=NOW)) for queue in ("work", "other")] == [2, 2]
    assert yard.reschedule("door", "0-7", until=NOW + 9, now=NOW, **WHO)
    assert [list_wrong_members(yard.client, keys, queue) for queue in ("work", "other")] == [[], []]


def test_a_unique_key_goes_along_and_holds_up_what_would_be_second(yard):
    first, other = *put(yard, unique="u"), *put(yard, "other", unique="u")
    with unchanged(yard):
        assert not yard.reschedule("door", first, queue="other", now=NOW, **WHO)
    yard.withdraw("door", other, **WHO)
    assert yard.reschedule("door", first, queue="other", now=NOW, **WHO)
    assert put(yard, "other", unique="u")[0].id == first.id
    assert put(yard, unique="u")[0].id != first.id


def test_an_instance_gets_the_result_from_the_other_queue(engine):
    busy(engine, "x")
    assert engine.reschedule("errand", "0-1", queue="other", now=NOW, **WHO)
    (job,) = engine.take("errand", "other", "w", now=NOW)
    assert engine.complete(job, now=NOW).state == "Done"


def test_what_a_worker_has_or_has_ended_stays(engine):
    busy(engine, "x", "y")
    first, second = take(engine, count=2)
    engine.suspend("errand", "y", **WHO)
    engine.fail(second, "no", retry=False, now=NOW)
    with unchanged(engine):
        for job in (first, second):
            assert not engine.reschedule("errand", job, until=NOW + 5, now=NOW, **WHO)
        with pytest.raises(BadInput):
            engine.reschedule("errand", "0-9 ", **WHO)
    assert places(engine) == {first.id: "leased", second.id: "dead"}


def test_a_job_that_came_back_is_not_the_one_that_was_seen(yard):
    put(yard, delay=50)
    seen = yard.job("door", "0-1")
    (job,) = yard.take("door", "work", "w", now=NOW + 50)
    yard.fail(job, "no", now=NOW + 50)
    with unchanged(yard):
        assert not yard.reschedule("door", seen, queue="other", unchanged=True, now=NOW, **WHO)
    assert yard.reschedule("door", yard.job("door", "0-1"), queue="other", unchanged=True, now=NOW, **WHO)


@for_each("call", ["withdraw", "reschedule"])
def test_a_job_that_went_to_another_queue_is_not_the_one_that_was_seen(yard, call):
    (job,) = put(yard)
    seen, more = yard.job("door", job.id), {} if call == "withdraw" else {"until": NOW + 5}
    yard.reschedule("door", job, queue="other", now=NOW, **WHO)
    with unchanged(yard):
        assert not getattr(yard, call)("door", seen, unchanged=True, now=NOW, **more, **WHO)


def test_what_does_not_fit_is_refused(yard):
    put(yard)

    @for_each("words", [{}, {"queue": "no queue"}, {"until": -1}, {"until": NOW + 10**13}, {"until": 1.5}])
    def check(words):
        with unchanged(yard), pytest.raises(BadInput):
            yard.reschedule("door", "0-1", now=NOW, **words, **WHO)

    check()


def test_turns_of_groups_stay_fair_where_many_are_moved(engine):
    publish(engine, machine("door", {"A": {}}))
    for group in "ab":
        put(engine, count=20, group=group)
    for number in range(1, 11):
        engine.reschedule("door", f"0-{number}", queue="other", now=NOW, **WHO)
    put(engine, "other", count=10, group="b")
    taken = Counter(job.group for job in engine.take("door", "other", "w", count=10, now=NOW))
    assert taken == {"a": 5, "b": 5}
