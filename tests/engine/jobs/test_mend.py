"""Keys that were damaged from outside: every job is put back where its hash says it is, and worked off once."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machines.engine import MendReport, UnknownMachine
from machines.engine.keys import Keys
from tests.cases import for_each
from tests.conftest import remove
from tests.engine.bells import Bells
from tests.engine.builders import NOW, errand, publish
from tests.engine.dumps import unchanged
from tests.faults.audit import audit, look

from .queueing import PLACES, busy, places, take
from .stored_jobs import spread_job

LEASE, GRACE = 30_000, 10_000  # ms
SPREAD = {"0-1": "dead", "0-2": "delayed", "0-3": "leased", "0-4": "leased", "0-5": "ready", "0-6": "ready"}


@pytest.fixture
def keys(engine):
    return spread(engine)


def spread(engine):
    """A machine with jobs in each place; the keys of its partition."""
    busy(engine, *"abcdef", retry={"attempts": 2, "jitter": False})
    first, second, *_ = take(engine, count=4)
    engine.suspend("errand", first.instance, actor="ann", reason="it deals with the death later")
    engine.fail(first, "no", retry=False, now=NOW)
    engine.fail(second, "not now", now=NOW)
    assert places(engine) == SPREAD
    return engine.keys.partition("errand")


def mend(engine, at=NOW):
    return engine.mend("errand", now=at)


def calm(engine, keys):
    """Servers go on with growing the table of a hash whenever it is read, which changes the order it is dumped in."""
    for job in SPREAD:
        engine.client.hmget(keys.job(job), ["place"] * 64)


def work_off(engine, now):
    """Every open job until none is left; instance -> steps that the end of a job made."""
    for id in "abcdef":
        if engine.get("errand", id).suspended:
            engine.resume("errand", id, actor="ann", reason="it deals with the death now")
    while engine.sweep("errand", now=now) or any(engine.queues("errand")["work"][p] for p in ("ready", "delayed")):
        engine.complete_many([(job, None) for job in take(engine, count=100, now=now)], now=now)
        now += 60_000
    steps = {id: [step.event for step in engine.history("errand", id)] for id in "abcdef"}
    return {id: sum("invoke" in event for event in events) for id, events in steps.items()}


def score(engine, keys, place, job):
    return engine.client.zscore(getattr(keys, place)("work"), job)


DAMAGE = {
    "the ready are gone": (lambda c, k: c.delete(k.ready("work")), MendReport(ready=2)),
    "the leased are gone": (lambda c, k: c.delete(k.leased("work")), MendReport(leased=2)),
    "the delayed are gone": (lambda c, k: c.delete(k.delayed("work")), MendReport(delayed=1)),
    "the dead are gone": (lambda c, k: c.delete(k.dead("work")), MendReport(dead=1)),
    "one is gone": (lambda c, k: c.zrem(k.ready("work"), "0-6"), MendReport(ready=1)),
    "one is in two places": (lambda c, k: c.zadd(k.ready("work"), {"0-3": 1}), MendReport(strays=1)),
    "one is everywhere": (
        lambda c, k: [c.zadd(getattr(k, p)("work"), {"0-6": 1}) for p in PLACES if p != "ready"],
        MendReport(strays=4),
    ),
    "one is in the wrong place": (
        lambda c, k: (c.zrem(k.ready("work"), "0-6"), c.zadd(k.delayed("work"), {"0-6": NOW})),
        MendReport(ready=1, strays=1),
    ),
    "one is in another queue, too": (lambda c, k: c.zadd(k.ready("other"), {"0-6": 1}), MendReport(strays=1)),
    "members without a job": (
        lambda c, k: [c.zadd(getattr(k, p)("work"), {"0-77": 1, "what": 2}) for p in PLACES],
        MendReport(ghosts=10),
    ),
    "a place that is none": (lambda c, k: c.hset(k.job("0-6"), "place", "nowhere"), MendReport(words=1)),
    "no place, of one that is leased": (lambda c, k: c.hdel(k.job("0-3"), "place"), MendReport(words=1)),
    "no place, of one that is dead": (lambda c, k: c.hdel(k.job("0-1"), "place"), MendReport(words=1)),
    "a token of one that is ready": (lambda c, k: c.hset(k.job("0-6"), "token", "x"), MendReport(words=1)),
    "no attempt of one that is leased": (lambda c, k: c.hset(k.job("0-3"), "attempt", ""), MendReport(words=1)),
    "the queue is not listed": (lambda c, k: c.delete(k.queues), MendReport(words=1)),
    "all places are gone": (
        lambda c, k: c.delete(k.queues, *[getattr(k, p)("work") for p in PLACES]),
        MendReport(ready=2, leased=2, delayed=1, dead=1, words=1),
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_what_was_damaged_is_mended_and_worked_off_once(engine, keys, name):
    damage, mended = DAMAGE[name]
    damage(engine.client, keys)
    assert mend(engine) == mended
    assert places(engine) == SPREAD
    audit(engine, "errand")
    calm(engine, keys)
    with unchanged(engine):
        assert mend(engine) == MendReport()
    assert work_off(engine, NOW + LEASE) == dict.fromkeys("abcdef", 1)
    assert engine.counts("errand") == {"Idle": 0, "Busy": 0, "Done": 5, "Failed": 1}


@pytest.mark.parametrize(
    "plain",
    ["", "x", "-1 z", "work work w", "work work work 1", "work work w x", "work work w t x", " 1-a+ 5 900 w", " "],
)
def test_a_damaged_job_takes_no_other_with_it(engine, plain):
    busy(engine, *"xyz")
    keys = engine.keys.partition("errand")
    engine.client.set(keys.job("0-2"), plain)
    assert [job.id for job in take(engine, count=10)] == ["0-1", "0-3"]
    assert engine.mend("errand", now=NOW) == MendReport()
    assert engine.fire("errand", "y", "abandon", now=NOW).state != "Busy"


def test_a_plain_job_among_the_delayed_ones_does_not_stop_its_queue(engine):
    busy(engine, *"xy")
    keys = engine.keys.partition("errand")
    engine.client.zadd(keys.delayed("work"), {"0-1": NOW})
    engine.client.zrem(keys.ready("work"), "0-1")
    jobs = take(engine, count=10)
    assert [job.id for job in jobs] == ["0-1", "0-2"]
    assert [engine.complete(job, now=NOW).state for job in jobs] == ["Done", "Done"]


def test_a_unique_key_that_names_a_plain_job_is_free(engine):
    busy(engine, "x")
    keys = engine.keys.partition("errand")
    engine.client.set(keys.unique("work", "serial"), "0-1")
    job = engine.enqueue("errand", "work", queue="work", unique="serial", now=NOW)
    assert (job.id, engine.enqueue("errand", "work", queue="work", unique="serial", now=NOW).id) == ("0-2", "0-2")


def test_a_job_that_was_never_taken_is_where_its_hash_says(engine):
    busy(engine, *"xy")
    keys = engine.keys.partition("errand")
    spread_job(engine.client, keys.job("0-1"), place="delayed")
    spread_job(engine.client, keys.job("0-2"), place="dead")
    assert engine.mend("errand", now=NOW) == MendReport(delayed=1, dead=1, strays=2)
    engine.sweep("errand", now=NOW + 10)
    assert places(engine) == {"0-1": "ready", "0-2": "dead"}
    engine.redrive("errand", "work", actor="ann", reason="again", now=NOW + 10)
    assert [job.instance for job in take(engine, now=NOW + 10, count=9)] == ["x", "y"]


def test_a_healthy_partition_is_left_exactly_as_it_is(engine, keys):
    calm(engine, keys)
    for at in (NOW, NOW + 10 * LEASE, None):
        with unchanged(engine):
            assert engine.mend("errand", now=at) == MendReport()


def test_jobs_come_back_with_the_rank_and_the_moment_they_had(engine, keys):
    engine.enqueue("errand", "work", queue="work", priority=9, now=NOW)
    before = {(place, job): score(engine, keys, place, job) for job, place in places(engine).items()}
    for place in PLACES:
        engine.client.delete(getattr(keys, place)("work"))
    assert mend(engine).total == 7
    assert {(place, job): score(engine, keys, place, job) for job, place in places(engine).items()} == before
    assert take(engine)[0].priority == 9


def test_a_lease_that_should_be_over_lasts_a_moment_for_a_worker_that_lives(engine, keys):
    engine.client.delete(keys.leased("work"))
    late = NOW + 10 * LEASE
    held = engine.job("errand", "0-3")
    assert mend(engine, late) == MendReport(leased=2)
    assert engine.renew([held], LEASE, now=late + 2000) == [""]
    assert engine.sweep("errand", now=late + GRACE - 1) == 1  # the delayed one
    assert engine.sweep("errand", now=late + GRACE) == 1
    assert {job: place for job, place in places(engine).items() if job in ("0-3", "0-4")} == {
        "0-3": "leased",
        "0-4": "ready",
    }
    assert engine.complete(held, now=late + GRACE).state == "Done"


def test_one_that_nobody_renews_is_taken_back_as_lost_and_counts_an_attempt(engine, keys):
    late = NOW + LEASE
    for attempt in (1, 2):
        engine.client.delete(keys.leased("work"))
        assert mend(engine, late).leased
        assert engine.advance("errand", now=late + GRACE + 500)[0]
        log = engine.job("errand", "0-3").log
        assert [(entry["attempt"], entry["outcome"], entry["worker"]) for entry in log][-1] == (attempt, "lost", "w")
        late += LEASE
        take(engine, count=100, now=late)
        late += LEASE
    assert places(engine)["0-3"] == "handled"
    assert engine.get("errand", "c").state == "Failed"


def test_one_past_its_timeout_is_taken_back_at_once(engine):
    busy(engine, "x", timeout="5s")
    take(engine)
    engine.client.delete(engine.keys.partition("errand").leased("work"))
    assert mend(engine, NOW + 5000) == MendReport(leased=1)
    assert engine.sweep("errand", now=NOW + 5000) == 1
    assert engine.job("errand", "0-1").log[0]["outcome"] == "timeout"


def test_one_that_nobody_can_hold_is_taken_back_at_once(engine, keys):
    engine.client.hset(keys.job("0-6"), "place", "leased")
    assert mend(engine) == MendReport(leased=1, strays=1, words=1)
    assert engine.sweep("errand", now=NOW) == 1
    assert places(engine) == SPREAD


def test_whoever_held_a_job_that_was_made_ready_has_lost_it(engine, keys):
    held = engine.job("errand", "0-3")
    engine.client.hset(keys.job("0-3"), "place", "ready")
    assert mend(engine) == MendReport(ready=1, strays=1, words=1)
    assert [bool(why) for why in engine.renew([held], LEASE, now=NOW)] == [True]
    assert work_off(engine, NOW + LEASE) == dict.fromkeys("abcdef", 1)


def test_what_is_no_job_is_left_alone(engine, keys):
    engine.client.set(keys.job("0-77"), "foreign")
    engine.client.hset(keys.job("0-78"), mapping={"some": "hash"})
    engine.client.hset(keys.job("0-79"), mapping={"queue": "a queue?", "place": "ready"})
    engine.client.hset(keys.job("old"), mapping={"queue": "work", "place": "ready"})
    calm(engine, keys)
    with unchanged(engine):
        assert mend(engine) == MendReport()


def test_a_member_whose_key_is_no_job_leaves_and_the_key_stays(engine, keys):
    engine.client.set(keys.job("0-77"), "foreign")
    engine.client.zadd(keys.ready("work"), {"0-77": 1})
    assert mend(engine) == MendReport(ghosts=1)
    assert engine.client.get(keys.job("0-77")) == "foreign"


def test_what_lies_in_the_way_of_a_place_is_told_and_the_others_are_mended(engine, keys):
    engine.client.delete(keys.ready("work"), keys.dead("work"))
    engine.client.set(keys.ready("work"), "foreign")
    found = mend(engine)
    assert (found.dead, found.ready) == (1, 0)
    assert found.faults
    assert all("WRONGTYPE" in fault and keys.root in fault for fault in found.faults)
    assert engine.client.get(keys.ready("work")) == "foreign"
    engine.client.delete(keys.ready("work"))
    assert mend(engine) == MendReport(ready=2)
    assert places(engine) == SPREAD


def test_idle_workers_are_woken_for_what_is_ready_again(engine, keys):
    engine.client.delete(keys.ready("work"))
    assert take(engine) == []
    bells = Bells(engine, "errand")
    mend(engine)
    assert bells.heard() == ["job work"]
    bells.close()


def test_more_than_one_step_sees_them_all_and_no_other_machine(engine):
    publish(engine, errand() | {"id": "other"})
    publish(engine, errand())
    for name in ("errand", "other"):
        engine.enqueue_many([{"machine": name, "src": "work", "now": NOW} for _ in range(1300)])
        partition = engine.keys.partition(name)
        engine.client.zadd(partition.leased("work"), {f"9-{n}": 1 for n in range(1300)})
        engine.client.delete(partition.ready("work"))
    assert mend(engine) == MendReport(ready=1300, ghosts=1300)
    assert engine.queues("other")["work"]["ready"] == 0
    walk, steps = engine.mending(), []
    while not walk.over:
        steps.append(walk.step(NOW))
    assert sum(steps, MendReport()) == MendReport(ready=1300, ghosts=1300)
    assert len(steps) > 3
    assert max(step.total for step in steps) < 2600
    assert walk.step(NOW) == MendReport()


def test_each_partition_is_walked(engine, redis_url, prefix):
    several = type(engine).from_url(redis_url, prefix=prefix, partitions=3)
    publish(several, errand())
    several.enqueue_many([{"machine": "errand", "src": "work", "instance_key": str(n)} for n in range(30)])
    for number in range(3):
        assert several.client.delete(several.keys.partition("errand", number).ready("work"))
    assert several.mend("errand") == MendReport(ready=30)
    assert several.queues("errand")["work"]["ready"] == 30
    several.client.close()


def test_a_machine_that_is_not_there_is_not_mended(engine):
    with pytest.raises(UnknownMachine):
        engine.mend("errand")


def test_a_call_that_makes_no_sense_is_told_so(engine, keys):
    with unchanged(engine):
        for words in (["", "work", "nowhere", "0"], ["", "", "ready", "0"], ["", "work", "ready", "x"],
                      ["soon", "", "", "0-1"], ["", "", "", *["0-1"] * 501]):  # fmt: skip
            assert engine.client.fcall("sb_mend", 1, keys.root, *words)[0] == "BADARG"


def test_results_add_up_and_say_so_in_words():
    both = MendReport(ready=1, faults=("a",)) + MendReport(ready=2, ghosts=1, faults=("a", "b"))
    assert both == MendReport(ready=3, ghosts=1, faults=("a", "b"))
    assert (both.total, str(both), str(MendReport())) == (4, "3 ready, 1 ghosts", "nothing")


@for_each(
    "name, found",
    [
        ("sb:{m:0}:job:0-12", ("sb:{m:0}", "0-12", "", "")),
        ("sb:{m:0}:q:work", ("sb:{m:0}", "", "work", "ready")),
        ("sb:{m:3}:q:a.b-c:leased", ("sb:{m:3}", "", "a.b-c", "leased")),
        ("sb:{m:0}:q:work:bell", None),
        ("sb:{m:0}:qs:work", None),
        ("sb:{m:0}:queues", None),
        ("sb:{m:0}:job:x", None),
        ("sb:{m:0}:i:{m:0}:job:0-1", None),
        ("sb:{m:0}:i:x:q:work", None),
        ("tb:{m:0}:job:0-1", None),
    ],
)
def test_jobs_and_places_are_told_from_other_keys(name, found):
    assert Keys().job_or_place(name) == found


MEMBERS = st.sampled_from([f"0-{number}" for number in range(1, 9)])
LISTS = st.tuples(st.sampled_from(PLACES), st.sampled_from(["work", "work", "other"]))
WORDS = st.sampled_from(["ready", "delayed", "nowhere"])  # for the place of a job


@settings(max_examples=25)
@given(
    gone=st.sets(st.sampled_from(PLACES)),
    lost=st.sets(st.tuples(st.sampled_from(PLACES), MEMBERS), max_size=4),
    listed=st.sets(st.tuples(LISTS, MEMBERS), max_size=6),
    told=st.dictionaries(st.sampled_from(list(SPREAD)[1:]), WORDS, max_size=2),
)
def test_after_any_damage_each_job_is_in_exactly_one_place(engine, prefix, gone, lost, listed, told):
    remove(engine.client, prefix)
    keys = spread(engine)
    pipeline = engine.client.pipeline()
    for place in gone:
        pipeline.delete(getattr(keys, place)("work"))
    for place, job in lost:
        pipeline.zrem(getattr(keys, place)("work"), job)
    for (place, queue), job in listed:
        pipeline.zadd(getattr(keys, place)(queue), {job: NOW})
    pipeline.execute()
    for job, place in told.items():
        spread_job(engine.client, keys.job(job), place=place)
    mend(engine)
    assert look(engine, "errand").wrong == []
    calm(engine, keys)
    with unchanged(engine):
        assert mend(engine) == MendReport()
    assert Counter(work_off(engine, NOW + LEASE)) == Counter("abcdef")
