"""Figures of a queue: what happened, how long it took, what waits."""

import pytest

from machines.engine import EngineFault, rates
from tests.cases import for_each
from tests.engine.builders import NOW, door, publish

from .queueing import busy, take

WHO = {"actor": "a", "reason": "r"}


def put(engine, count, **facts):
    publish(engine, door())
    return engine.enqueue_many([{"machine": "door", "src": "work", "now": NOW} | facts for _ in range(count)])


def work(engine, now, count=1):
    return engine.take("door", "work", "w", count=count, now=now)


def test_a_queue_that_was_never_used_has_noughts(engine):
    busy(engine)
    stats = engine.stats("errand")["work"]
    assert stats.depth == {"ready": 0, "leased": 0, "delayed": 0, "dead": 0, "handled": 0}
    assert (stats.enqueued, stats.taken, stats.completed, stats.oldest, stats.waits) == (0, 0, 0, None, {})


def test_everything_that_happens_is_counted_once(engine):
    put(engine, 8)
    for job in work(engine, NOW, 5)[:2]:
        engine.complete(job, now=NOW)
    engine.fail(engine.jobs("door", "work", place="leased")[0], "no", now=NOW)
    engine.fail(engine.jobs("door", "work", place="leased")[0], "no", retry=False, now=NOW)
    engine.sweep("door", now=NOW + 30_000)
    engine.withdraw("door", "0-8", **WHO)
    engine.purge("door", "work", place="dead", **WHO)
    stats = engine.stats("door")["work"]
    assert (stats.enqueued, stats.taken, stats.completed, stats.failed, stats.lost, stats.died) == (8, 5, 2, 2, 1, 1)
    assert (stats.withdrawn, stats.purged, sum(stats.depth.values())) == (1, 1, 4)


def test_times_are_counted_by_their_magnitude(engine):
    put(engine, 7)
    for ms in (0, 1, 2, 3, 4, 1000, 1024):
        (job,) = work(engine, NOW + ms)
        engine.complete(job, now=NOW + 3 * ms)
    stats = engine.stats("door")["work"]
    assert stats.waits == {0: 1, 1: 1, 2: 2, 3: 1, 10: 1, 11: 1}
    assert stats.runs == {0: 1, 2: 1, 3: 2, 4: 1, 11: 1, 12: 1}


def test_a_wait_begins_when_the_job_could_have_been_taken(engine):
    put(engine, 1, delay=5000)
    (job,) = work(engine, NOW + 5008)
    engine.fail(job, "no", delay=60_000, now=NOW + 6000)
    (job,) = work(engine, NOW + 66_016)
    engine.hand_back(job, now=NOW + 100_000)
    work(engine, NOW + 100_032)
    assert engine.stats("door")["work"].waits == {4: 1, 5: 1, 6: 1}


def test_the_oldest_is_the_one_that_waits_longest_whatever_its_priority(engine):
    put(engine, 1, priority=1)
    put(engine, 3, priority=9, now=NOW + 500)
    put(engine, 2, priority=5, now=NOW + 100)
    put(engine, 1, priority=7, delay=10)
    assert engine.stats("door")["work"].oldest == NOW
    assert [job.priority for job in work(engine, NOW + 600, 7)] == [9, 9, 9, 7, 5, 5, 1]
    assert engine.stats("door")["work"].oldest is None


def test_a_job_that_came_back_does_not_hide_how_long_the_others_have_waited(engine):
    publish(engine, door())
    for number in range(4):
        engine.enqueue("door", "work", now=NOW + number)
    (first,) = engine.take("door", "work", "w", now=NOW + 10)
    engine.hand_back(first, now=NOW + 60_000)
    assert engine.jobs("door", "work")[0].id == first.id
    assert engine.stats("door")["work"].oldest == NOW + 1


def test_statistics_are_no_reason_to_fail(engine):
    busy(engine, *"ab")
    key = engine.keys.partition("errand").stats("work")
    engine.client.set(key, "foreign")
    first, second = take(engine, count=2)
    assert engine.complete(first).state == "Done"
    assert engine.fail(second, "no", retry=False) == "dead"
    assert engine.client.get(key) == "foreign"
    with pytest.raises(EngineFault):
        engine.stats("errand")


@for_each(
    "histogram, share, ms",
    [
        ({}, 0.5, None),
        ({0: 10}, 0.5, 0.5),
        ({0: 5, 4: 5}, 0.5, 1.0),
        ({4: 10}, 0.5, 12.0),
        ({4: 10}, 1.0, 16.0),
        ({1: 90, 10: 10}, 0.95, 768.0),
        ({3: 1}, 0.0, 4.0),
    ],
)
def test_a_quantile_lies_where_that_share_of_the_times_is_below(histogram, share, ms):
    assert rates.estimate_quantile(histogram, share) == ms


@for_each(
    "text, parsed, shown",
    [
        ("100/s", (100, 1000), "100/s"),
        (" 30/m ", (30, 60_000), "30/m"),
        ("5/10s", (5, 10_000), "5/10s"),
        ("1 / 250ms", (1, 250), "1/250ms"),
        ("60/60s", (60, 60_000), "60/m"),
        ("1/d", (1, 86_400_000), "1/d"),
        ("", None, ""),
        ("s", None, ""),
        ("-1/s", None, ""),
        ("1.5/s", None, ""),
        ("1/25h", None, ""),
    ],
)
def test_rates_are_read_and_shown(text, parsed, shown):
    assert rates.parse_rate(text) == parsed
    assert parsed is None or rates.format_rate(*parsed) == shown
