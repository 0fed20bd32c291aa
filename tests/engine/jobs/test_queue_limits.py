"""What holds a queue back: a pause, how many jobs at a time, how fast."""

import pytest

from machines.engine import BadInput, Engine, EngineFault
from tests.cases import for_each
from tests.engine.bells import Bells, wait_on_lists
from tests.engine.builders import NOW, door, machine, publish
from tests.engine.dumps import unchanged
from tests.engine.instances.racing import in_threads

WHO = {"actor": "ann", "reason": "because"}


@pytest.fixture
def full(engine):
    """A queue ``work`` with fifty jobs."""
    publish(engine, door())
    engine.enqueue_many([{"machine": "door", "src": "work", "input": n, "now": NOW} for n in range(50)])
    return engine


def take(engine, count=10, now=NOW):
    return engine.take("door", "work", "w", count=count, now=now)


def test_nothing_is_handed_out_while_a_queue_is_paused(full):
    (held,) = take(full, count=1)
    full.pause("door", "work", now=NOW, **WHO)
    taken = take(full)
    assert (taken, taken.hint, taken.wait) == ([], "paused", None)
    found = full.list_pauses("door")["work"]
    assert (found.since, found.actor, found.reason) == (NOW, "ann", "because")
    full.complete(held)
    full.enqueue("door", "work")
    assert take(full) == []
    full.resume_queue("door", "work", **WHO)
    assert (len(take(full)), full.list_pauses("door")) == (10, {})


def test_who_paused_and_why_stands_in_the_log(full):
    full.pause("door", "work", **WHO)
    full.resume_queue("door", "work", **WHO)
    full.limit("door", "work", concurrency=3, actor="ann")
    entries = [entry for _, entry in full.client.xrange(full.keys.partition("door").log)]
    assert [(e["kind"], e["name"], e["actor"]) for e in entries] == [
        ("queue", name, "ann") for name in ("pause", "resume", "limit")
    ]
    assert entries[0]["reason"] == "because"
    with unchanged(full), pytest.raises(BadInput, match="needs a reason"):
        full.pause("door", "work", actor="ann", reason=" ")


def test_resuming_wakes_idle_workers(full):
    full.pause("door", "work", **WHO)
    wait_on_lists(full, "door")
    bells = Bells(full, "door")
    full.client.delete(bell := full.keys.partition("door").bell("work"))
    full.resume_queue("door", "work", **WHO)
    assert (full.client.llen(bell), bells.heard()) == (8, ["job work"])
    bells.close()


def test_no_more_jobs_are_leased_than_the_limit_allows(full):
    full.limit("door", "work", concurrency=3)
    first = take(full, count=2)
    second = take(full)
    assert (len(first), first.hint, len(second), second.hint, take(full)) == (2, "", 1, "busy", [])
    full.complete(first[0])
    full.fail(first[1], "no")
    assert len(take(full)) == 2
    full.limit("door", "work", concurrency=0)
    assert len(take(full)) == 10


def test_racing_workers_never_pass_the_limit(full):
    full.limit("door", "work", concurrency=7)
    taken = in_threads([lambda: take(full, count=3)] * 8)
    assert sum(map(len, taken)) == 7
    assert full.queues("door")["work"]["leased"] == 7


@pytest.mark.parametrize("end", ["complete", "fail", "bury", "hand back", "sweep", "withdraw"])
def test_a_place_that_becomes_free_rings_for_who_waits(full, end):
    full.limit("door", "work", concurrency=1)
    (job,) = take(full, count=1)
    bells = Bells(full, "door")
    assert take(full).hint == "busy"
    assert bells.heard() == []
    {
        "complete": lambda: full.complete(job),
        "fail": lambda: full.fail(job, "no"),
        "bury": lambda: full.fail(job, "no", retry=False),
        "hand back": lambda: full.hand_back(job),
        "sweep": lambda: full.sweep("door", now=job.lease_until),
        "withdraw": lambda: full.withdraw("door", job, **WHO),
    }[end]()
    assert bells.heard()[:1] == ["job work"]
    assert len(take(full)) == 1
    bells.close()


def test_a_rate_is_even_and_exact(full):
    """20/s: one in 50 ms, whoever asks and how often."""
    full.limit("door", "work", rate="20/s")
    moments = []
    for now in range(NOW, NOW + 1000):
        moments += [now] * len(take(full, now=now))
    assert moments == list(range(NOW, NOW + 1000, 50))


def test_a_rate_tells_how_long_to_wait(full):
    full.limit("door", "work", rate="30/m")
    taken = take(full)
    assert (len(taken), taken.hint, taken.wait) == (1, "rate", 2000)
    assert take(full, now=NOW + 500).wait == 1500
    assert len(take(full, now=NOW + 1999)) == 0
    assert len(take(full, now=NOW + 2000)) == 1


def test_a_fast_rate_hands_out_what_came_due_together(full):
    """1000/s: fifty at once after a quiet time, then one a millisecond."""
    full.limit("door", "work", rate="1000/s")
    full.enqueue_many([{"machine": "door", "src": "work", "now": NOW}] * 200)
    assert [len(take(full, count=100, now=NOW + ms)) for ms in (0, 0, 1, 3, 10, 10)] == [50, 0, 1, 2, 7, 0]
    assert len(take(full, count=100, now=NOW + 60)) == 50, "no more than fifty are saved up"


@pytest.mark.parametrize(("rate", "ms"), [("3/s", 10_000), ("7/s", 4_000), ("90/m", 20_000), ("1/2s", 21_000)])
def test_over_a_long_time_the_rate_is_what_it_says(engine, rate, ms):
    publish(engine, door())
    engine.enqueue_many([{"machine": "door", "src": "work", "now": NOW}] * 100)
    engine.limit("door", "work", rate=rate)
    taken = sum(len(take(engine, now=NOW + at)) for at in range(0, ms, 13))
    assert taken == {"3/s": 30, "7/s": 28, "90/m": 30, "1/2s": 11}[rate]


def test_a_clock_that_is_set_back_does_not_stop_a_queue(full):
    full.limit("door", "work", rate="10/s")
    take(full, now=NOW + 3_600_000)
    assert [len(take(full, now=NOW + ms)) for ms in (0, 99, 100)] == [1, 0, 1]
    assert take(full, now=NOW + 50).wait == 150, "a little, as between two servers, is waited out"


def test_both_limits_hold_together(full):
    full.limit("door", "work", concurrency=2, rate="1000/s")
    assert [len(take(full, now=NOW + ms)) for ms in (0, 1, 2)] == [2, 0, 0]
    stats = full.stats("door")["work"]
    assert (stats.concurrency, stats.rate) == (2, "1000/s")


LIMITS = {"work": {"concurrency": 2, "rate": "100/m"}, "other": {"rate": "5/10s"}}


def test_limits_of_the_definition_hold_from_publishing_on(engine):
    publish(engine, door(queues=LIMITS))
    stats = engine.stats("door")
    assert (stats["work"].concurrency, stats["work"].rate, stats["other"].rate) == (2, "100/m", "5/10s")
    publish(engine, door(queues={"work": {"concurrency": 4}}))
    stats = engine.stats("door")
    assert (stats["work"].concurrency, stats["work"].rate, stats["other"].rate) == (4, "", "")


def test_the_operators_word_goes_before_the_definitions(engine):
    publish(engine, door(queues=LIMITS))
    engine.limit("door", "work", concurrency=9, rate="none")
    publish(engine, door(queues=LIMITS, history=5))
    stats = engine.stats("door")["work"]
    assert (stats.concurrency, stats.rate) == (9, "")
    engine.limit("door", "work", concurrency=0)
    stats = engine.stats("door")["work"]
    assert (stats.concurrency, stats.rate) == (None, "100/m")


def test_limits_hold_for_several_partitions_together(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=3)
    publish(engine, door(queues={"work": {"concurrency": 7, "rate": "60/m"}}))
    engine.enqueue_many([{"machine": "door", "src": "work", "now": NOW} for _ in range(90)])
    stats = engine.stats("door")["work"]
    assert (stats.concurrency, stats.rate) == (7, "60/m")
    assert len(take(engine, count=50)) == 1
    engine.limit("door", "work", concurrency=7, rate="none")
    assert len(take(engine, count=50)) == 6
    engine.limit("door", "work", concurrency=1)
    assert engine.stats("door")["work"].concurrency == 1
    engine.client.close()


@for_each(
    "limit",
    [
        {"concurrency": -1},
        {"concurrency": 1.5},
        {"concurrency": 10**7},
        {"rate": "fast"},
        {"rate": "0/s"},
        {"rate": "1/0s"},
        {"rate": "5"},
        {"rate": 5},
        {"rate": "1/2d"},
        {"rate": "10000000/s"},
    ],
)
def test_limits_that_make_no_sense_are_bad_input(full, limit):
    with unchanged(full), pytest.raises(BadInput):
        full.limit("door", "work", **limit)


def test_a_foreign_key_in_the_place_of_the_rules_stops_the_take_and_loses_nothing(full):
    full.client.set(full.keys.partition("door").rules("work"), "foreign")
    with unchanged(full), pytest.raises(EngineFault):
        take(full)


def test_a_definition_is_not_published_over_a_foreign_key(engine):
    engine.client.set(engine.keys.partition("m").rules("work"), "foreign")
    with unchanged(engine), pytest.raises(EngineFault):
        engine.publish(machine("m", {"A": {}}, queues=LIMITS))
