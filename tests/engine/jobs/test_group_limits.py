"""Limits of the groups of a queue: concurrency, rate and pause of each, declared or set by an operator."""

import pytest

from machines.engine import BadInput, Engine
from machines.engine.errors import DefinitionError
from tests.cases import for_each
from tests.engine.bells import Bells
from tests.engine.builders import NOW, door, machine, publish
from tests.engine.dumps import unchanged
from tests.engine.instances.racing import in_threads

from .queueing import busy, places

WHO = {"actor": "ann", "reason": "because"}


@pytest.fixture
def yard(engine):
    publish(engine, door())
    return engine


def put(engine, group, count=1, **options):
    items = [{"machine": "door", "src": "work", "input": n, "now": NOW, "group": group} | options for n in range(count)]
    return engine.enqueue_many(items)


def put_each(engine, groups, **options):
    engine.enqueue_many({"machine": "door", "src": "work", "now": NOW, "group": group} | options for group in groups)


def take(engine, count=10, now=NOW):
    return engine.take("door", "work", "w", count=count, now=now)


def take_all(engine):
    """Takes until there is nothing to take at once: changed limits are looked at group by group."""
    found, taken = [], take(engine)
    while taken or taken.wait == 1:
        found += taken
        taken = take(engine)
    return found


def read_groups(jobs):
    return "".join(job.group or "-" for job in jobs)


def list_keys(engine):
    """The keys that limits of groups need."""
    partition = engine.keys.partition("door")
    keys = [getattr(partition, name)("work") for name in ("limits", "members", "arrivals", "releases")]
    return [key for key in keys if engine.client.exists(key)]


def test_a_group_has_no_more_jobs_at_a_time_than_its_limit(yard):
    yard.limit("door", "work", group="a", concurrency=2)
    put(yard, "a", 5)
    put(yard, "b", 3)
    found = take(yard)
    assert sorted(read_groups(found)) == list("aabbb")
    assert take(yard) == []
    assert (yard.stats("door")["work"].held, yard.queues("door")["work"]["ready"]) == (3, 3), "they are ready, and held"
    yard.complete(next(job for job in found if job.group == "a"))
    (further,) = take(yard)
    assert (further.group, further.input) == ("a", 2), "the jobs of a group keep their order"


@pytest.mark.parametrize("end", ["complete", "complete many", "fail", "bury", "hand back", "sweep", "withdraw"])
def test_a_place_that_becomes_free_brings_the_next_one(yard, end):
    yard.limit("door", "work", group="a", concurrency=1)
    put(yard, "a", 3)
    (job,) = take(yard)
    bells = Bells(yard, "door")
    assert take(yard) == []
    {
        "complete": lambda: yard.complete(job),
        "complete many": lambda: yard.complete_many([(job, None), (job, None)]),
        "fail": lambda: yard.fail(job, "no"),
        "bury": lambda: yard.fail(job, "no", retry=False),
        "hand back": lambda: yard.hand_back(job),
        "sweep": lambda: yard.sweep("door", now=job.lease_until),
        "withdraw": lambda: yard.withdraw("door", job, **WHO),
    }[end]()
    assert bells.heard()[:1] == ["job work"]
    (next_job,) = take(yard)
    assert next_job.input == (0 if end in ("hand back", "sweep") else 1), "a job that comes back goes first"
    bells.close()


def test_racing_workers_never_pass_the_limit_of_a_group(yard):
    yard.limit("door", "work", group="a", concurrency=7)
    put(yard, "a", 40)
    put(yard, "b", 3)
    taken = in_threads([lambda: take(yard, count=3)] * 8)
    assert sorted(read_groups([job for jobs in taken for job in jobs])) == list("a" * 7 + "b" * 3)


def test_a_rate_of_a_group_is_even_and_exact(yard):
    yard.limit("door", "work", group="a", rate="20/s")
    put(yard, "a", 50)
    moments = []
    for now in range(NOW, NOW + 1000):
        moments += [now] * len(take(yard, now=now))
    assert moments == list(range(NOW, NOW + 1000, 50))


def test_a_burst_is_saved_up_and_no_more(yard):
    yard.limit("door", "work", group="a", rate="10/s burst 5")
    put(yard, "a", 60)
    assert [len(take(yard, now=NOW + ms)) for ms in (0, 0, 99, 100, 300, 10_000, 10_000)] == [5, 0, 0, 1, 2, 5, 0]


def test_a_group_at_its_rate_tells_how_long_to_wait(yard):
    yard.limit("door", "work", group="a", rate="30/m")
    put(yard, "a", 3)
    taken = take(yard)
    assert (len(taken), taken.hint, taken.wait) == (1, "rate", 2000)
    put(yard, "b", 1)
    assert read_groups(take(yard, count=1)) == "b", "another group does not wait for it"
    assert [len(take(yard, now=NOW + ms)) for ms in (1999, 2000)] == [0, 1]


def test_late_takes_cost_the_rate_nothing(yard):
    for group, rate, pause, jobs in [("a", "10/s", 7, 100), ("b", "50/s burst 1", 47, 500)]:
        yard.limit("door", "work", group=group, rate=rate)
        put(yard, group, 600)
        taken = [job for ms in range(0, 10_000, pause) for job in take(yard, now=NOW + ms)]
        assert read_groups(taken).count(group) in (jobs - 1, jobs)


def test_a_clock_that_is_set_back_stops_no_group(yard):
    yard.limit("door", "work", group="a", rate="1/s")
    yard.limit("door", "work", group="b", rate="1/h")
    put(yard, "a", 3)
    put(yard, "b", 2)
    assert read_groups(take(yard)) == "ab"
    assert take(yard, now=NOW + 1).wait == 999
    back = NOW - 86_400_000
    assert [read_groups(take(yard, now=back + ms)) for ms in (0, 1000, 3_600_000)] == ["ab", "a", ""]


def test_a_paused_group_waits_and_the_others_go_on(yard):
    put(yard, "a", 3)
    put(yard, "b", 1)
    yard.pause("door", "work", group="a", **WHO)
    assert read_groups(take(yard)) == "b"
    assert take(yard) == []
    assert yard.stats("door")["work"].paused is None, "the queue itself is not paused"
    yard.resume_queue("door", "work", group="a", **WHO)
    assert [job.input for job in take(yard)] == [0, 1, 2]


def test_limits_that_are_set_late_count_what_is_leased_and_hold_what_is_ready(yard):
    put(yard, "a", 300)
    (held, *_) = take(yard, count=2)
    yard.limit("door", "work", group="a", concurrency=3)
    put(yard, "b", 20)
    assert read_groups(take_all(yard)).count("a") == 1
    yard.complete(held)
    assert read_groups(take_all(yard)) == "a"
    yard.limit("door", "work", group="a", concurrency=0)
    assert len(take_all(yard)) == 296
    assert len(places(yard, "work", "door")) == 319


def test_a_group_that_was_held_back_keeps_its_fair_share(yard):
    yard.limit("door", "work", group="a", concurrency=40)
    put(yard, "a", 200)
    put(yard, "b", 200)
    assert 18 <= read_groups(take(yard, 40)).count("a") <= 22


def test_of_very_many_groups_each_has_its_turn_and_few_are_noted(engine):
    publish(engine, door(queues={"work": {"groups": {"concurrency": 1}}}))
    old, partition = [f"m{number:04}" for number in range(1300)], engine.keys.partition("door")
    put_each(engine, old)
    assert engine.client.zcard(partition.releases("work")) <= 1001
    new, taken = [f"{'az'[number % 2]}{number:04}" for number in range(2000)], []
    for start in range(0, len(new), 4):
        put_each(engine, new[start : start + 4])
        taken += [job.group for job in take(engine, count=4)]
    assert set(old) <= set(taken), "those that come later do not hold up those that waited"
    taken += [job.group for job in take_all(engine)]
    assert sorted(taken) == sorted(old + new)


def test_a_new_group_is_taken_at_once_where_very_many_wait_for_their_rate(engine):
    publish(engine, door(queues={"work": {"groups": {"rate": "1/m"}}}))
    waiting = [f"m{number:04}" for number in range(1100)]
    put_each(engine, waiting * 2)
    assert sorted(job.group for job in take_all(engine)) == waiting
    put(engine, "new")
    assert [job.group for job in take(engine)] == ["new"]


def measure_memory(engine):
    """The bytes of the keys of a machine."""
    pipeline = engine.client.pipeline(transaction=False)
    for key in engine.client.scan_iter(f"{engine.keys.partition('door').root}*", count=1000):
        pipeline.memory_usage(key, samples=0)
    return sum(filter(None, pipeline.execute()))


@pytest.mark.parametrize("limits", [{}, {"groups": {"concurrency": 1}}])
def test_a_waiting_group_takes_at_most_two_hundred_bytes_beside_its_job(engine, limits):
    """A job of a group is a hash: the other ones are hashes, too, as those with a number of attempts of their own."""
    publish(engine, door(queues={"work": limits} if limits else {}))
    sizes = [measure_memory(engine)]
    for groups in [None] * 5000, [f"tenant-{number:07}" for number in range(5000)]:
        put_each(engine, groups, attempts=4)
        sizes.append(measure_memory(engine))
    assert (sizes[2] - 2 * sizes[1] + sizes[0]) / 5000 <= 200


def test_limits_of_the_definition_hold_for_each_group(engine):
    publish(engine, door(queues={"work": {"groups": {"concurrency": 1, "rate": "100/s burst 9"}}}))
    for group in "abc":
        put(engine, group, 4)
    assert sorted(read_groups(take(engine))) == ["a", "b", "c"]
    engine.limit("door", "work", group="a", concurrency=3)
    assert read_groups(take(engine)) == "aa", "an operator's limit goes before the definition's"
    publish(engine, door(queues={"work": {"groups": {"concurrency": 2}}}))
    assert sorted(read_groups(take_all(engine))) == ["b", "c"]
    publish(engine, door())
    assert sorted(read_groups(take_all(engine))) == ["b", "b", "c", "c"]
    engine.limit("door", "work", group="a")
    assert read_groups(take_all(engine)) == "a"


def test_a_limit_of_0_is_no_limit_and_stops_nothing(engine):
    publish(engine, door(queues={"work": {"groups": {"concurrency": 1, "rate": "1/s"}}}))
    put(engine, "a", 4)
    put(engine, "b", 4)
    engine.limit("door", "work", group="a", concurrency=0, rate="none")
    assert sorted(read_groups(take_all(engine))) == ["a", "a", "a", "a", "b"]


def test_what_no_group_needs_takes_no_memory(yard):
    yard.limit("door", "work", group="a", concurrency=1, rate="1000/s")
    put(yard, "a", 3)
    put(yard, "b", 3)
    yard.limit("door", "work", group="a")
    now = NOW
    while jobs := take(yard, now=now):
        yard.complete_many([(job, None) for job in jobs], now=now)
        now += 100
    take(yard, now=now + 5000)
    assert list_keys(yard) == []
    assert yard.client.hgetall(yard.keys.partition("door").rules("work")) == {}


@pytest.mark.parametrize("pause", [0, 5000])
def test_clocks_of_rates_are_forgotten_with_the_rates(engine, pause):
    publish(engine, door(queues={"work": {"groups": {"rate": "1/h"}}}))
    put(engine, "a")
    (job,) = take(engine)
    publish(engine, door())
    engine.complete(job)
    assert take(engine, now=NOW + pause) == []
    assert list_keys(engine) == []


def test_jobs_of_instances_are_limited_too(engine):
    ids = [f"i{n}" for n in range(6)]
    busy(engine, *ids, group="'a'")
    engine.limit("errand", "work", group="a", concurrency=2)
    found = engine.take("errand", "work", "w", count=10, now=NOW)
    assert len(found) == 2
    engine.fire("errand", found[0].instance, "abandon", now=NOW)
    assert len(engine.take("errand", "work", "w", count=10, now=NOW)) == 1
    waiting = next(id for id, place in places(engine).items() if place == "ready")
    engine.withdraw("errand", waiting, **WHO)
    engine.complete(found[1], now=NOW)
    assert len(engine.take("errand", "work", "w", count=10, now=NOW)) == 1


def test_on_several_partitions_a_group_of_plain_jobs_is_exact(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=3)
    publish(engine, door(queues={"work": {"groups": {"concurrency": 2}}}))
    for group in ("a", "b", "c", "d"):
        put(engine, group, 9)
        for number in range(9):
            put(engine, group, key=f"{group}{number}")
    found = take(engine, count=50)
    assert sorted(read_groups(found)) == list("aabbccdd")
    engine.client.close()


def test_on_several_partitions_a_group_of_instances_is_shared_out(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=3)
    ids = [f"i{n}" for n in range(60)]
    busy(engine, *ids, group="'a'")
    engine.limit("errand", "work", group="a", concurrency=7)
    assert len(engine.take("errand", "work", "w", count=50, now=NOW)) == 7
    engine.client.close()


@for_each(
    "limit, why",
    [
        ({"concurrency": -1}, "concurrency"),
        ({"rate": "0/s"}, "is no rate"),
        ({"rate": "5/s burst 0"}, "is no rate"),
        ({"rate": "burst 5"}, "is no rate"),
        ({"group": ""}, "group"),
        ({"group": "g" * 10_000}, "group"),
        ({"group": "a\0b"}, "group"),
    ],
)
def test_limits_of_groups_that_make_no_sense_are_bad_input(yard, limit, why):
    with unchanged(yard), pytest.raises(BadInput, match=why):
        yard.limit("door", "work", **{"group": "a", **limit})


def test_at_most_ten_thousand_groups_have_limits_of_their_own(yard):
    own = {f"g{number}": '{"concurrency":1}' for number in range(10_000)}
    yard.client.hset(yard.keys.partition("door").limits("work"), mapping=own)
    with unchanged(yard), pytest.raises(BadInput, match="at most 10000 groups of a queue have limits of their own"):
        yard.limit("door", "work", group="one more", concurrency=1)
    with unchanged(yard), pytest.raises(BadInput, match="declare limits for all groups"):
        yard.pause("door", "work", group="one more", **WHO)
    yard.limit("door", "work", group="g7", concurrency=2)
    yard.limit("door", "work", group="g8")
    yard.limit("door", "work", group="one more", concurrency=1)


@for_each(
    "groups, why",
    [
        ({"concurrency": 0}, "0 is not between 1 and 1000000"),
        ({"rate": "0/s"}, "is no rate"),
        ({"groups": {}}, "groups"),
        ([], "object"),
    ],
)
def test_a_definition_with_such_limits_is_refused(engine, groups, why):
    with pytest.raises(DefinitionError, match=why):
        publish(engine, machine("wrong", {"A": {}}, queues={"work": {"groups": groups}}))
