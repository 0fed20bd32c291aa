"""Limits of queues whose jobs lie on several partitions: the home of the queue admits them."""

import pytest

from machines.engine import Engine
from machines.engine.keys import choose_home, choose_partition
from machines.engine.transfer import repartitioning
from machines.engine.transfer.repartitioning import Repartition
from tests.engine.builders import NOW, machine

from .counted_jobs import CountedJobs
from .test_group_admissions import (
    LEASE,
    PARTITIONS,
    find_home,
    find_ids,
    find_others,
    list_counted,
    lose_calls,
    take,
)

LIMIT = 3
WORK = {"src": "run", "queue": "work", "onDone": "over"}
STATES = {
    "idle": {"on": {"go": "plain", "join": "grouped"}},
    "plain": {"invoke": WORK},
    "grouped": {"invoke": WORK | {"group": "group"}},
    "over": {},
}
JOB = {"machine": "errand", "src": "run", "queue": "work"}
WHO = {"actor": "ann", "reason": "because"}


@pytest.fixture
def yard(engine, prefix):
    several = Engine(engine.client, prefix=prefix, partitions=PARTITIONS)
    several.publish(machine("errand", STATES, context={"group": ""}, queues={"work": {"concurrency": LIMIT}}))
    return several


def begin(engine, ids, group="a", **options):
    for id in ids:
        engine.create("errand", id, data={"group": group}, **options)
        engine.fire("errand", id, "join" if group else "go", **options)


def start_everywhere(engine, count=3, group=""):
    for number in range(PARTITIONS):
        begin(engine, find_ids(number, count), group)


def test_no_queue_has_more_jobs_at_a_time_than_its_limit_and_each_is_done_once(yard):
    start_everywhere(yard, 20)
    yard.enqueue_many([JOB | {"group": group} for group in "abc"] * 10)
    counted = CountedJobs(yard, 110)
    counted.run(8)
    assert set(counted.done.values()) == {1}
    assert counted.most_of_all <= LIMIT
    assert list_counted(yard) == []


def test_a_limit_below_the_number_of_partitions_holds_and_is_shown(yard):
    start_everywhere(yard)
    assert len(take(yard)) == LIMIT
    assert yard.stats("errand")["work"].concurrency == LIMIT
    yard.limit("errand", "work", concurrency=5)
    assert len(take(yard)) == 2
    yard.limit("errand", "work", concurrency=0)
    assert len(take(yard)) == 7


def test_jobs_that_are_refused_are_back_where_they_were_and_their_attempts_do_not_count(yard):
    ids = find_ids(1, 8)
    begin(yard, ids, "")
    yard.limit("errand", "work", concurrency=4)
    first = take(yard)
    assert [job.instance for job in first] == ids[:4]
    assert take(yard) == []
    assert yard.stats("errand")["work"].taken == 4
    yard.complete_many([(job, None) for job in first])
    assert [(job.instance, job.attempt, job.log) for job in take(yard)] == [(id, 1, ()) for id in ids[4:]]


def test_a_place_that_becomes_free_is_for_a_partition_that_waits(yard):
    yard.limit("errand", "work", concurrency=1)
    start_everywhere(yard, 2)
    done = []
    (job,) = take(yard)
    while job:
        assert take(yard) == []
        done.append(job.instance)
        yard.complete(job)
        (job,) = take(yard) or [None]
    assert len(set(done)) == 2 * PARTITIONS


@pytest.mark.parametrize("end", ["complete", "complete many", "fail", "bury", "hand back"])
def test_the_end_of_a_job_frees_its_places(yard, end):
    yard.limit("errand", "work", group="a", concurrency=2)
    begin(yard, find_ids(find_others()[0], 1))
    (job,) = take(yard)
    home = yard.keys.partition("errand", choose_home("work", PARTITIONS)).root
    assert set(job.homes) == {("", home), ("a", yard.keys.partition("errand", find_home()).root)}
    assert len(list_counted(yard)) == 4, "by its queue and its group, as members and to be checked"
    {
        "complete": lambda: yard.complete(job),
        "complete many": lambda: yard.complete_many([(job, None), (job, None)]),
        "fail": lambda: yard.fail(job, "no"),
        "bury": lambda: yard.fail(job, "no", retry=False),
        "hand back": lambda: yard.hand_back(job, delay=1000),
    }[end]()
    assert list_counted(yard) == []


def test_a_place_that_a_killed_worker_holds_is_found_when_others_are_refused(yard):
    begin(yard, find_ids(1, 3), "", now=NOW)
    lost = take(yard, now=NOW)
    assert len(lost) == LIMIT
    begin(yard, find_ids(2, 3), "", now=NOW)
    yard.sweep("errand", now=NOW + LEASE)
    found, now = [], NOW + LEASE
    while len(found) < LIMIT:
        taken = take(yard, now=now)
        found += taken
        now += max(taken.wait or 0, 1)
    assert now < NOW + 2 * LEASE
    assert take(yard, now=now) == []


@pytest.mark.parametrize(("of_queue", "of_group"), [(1, 5), (5, 1)])
def test_a_job_that_its_queue_or_its_group_refuses_takes_no_place_of_the_other(yard, of_queue, of_group):
    yard.limit("errand", "work", concurrency=of_queue)
    yard.limit("errand", "work", group="a", concurrency=of_group)
    start_everywhere(yard, 2, "a")
    (job,) = take(yard)
    assert take(yard) == []
    assert len({member.partition(" ")[0] for member in list_counted(yard) if "\0l" in member}) == 2
    begin(yard, find_ids(1, 4, "b"), "b")
    assert len(take(yard)) == of_queue - 1
    yard.complete(job)
    assert len(take(yard)) == 1


@pytest.mark.parametrize("limit", [{"concurrency": 1}, {"rate": "1/h", "concurrency": 0}])
def test_a_job_that_its_queue_refuses_takes_no_place_of_a_group_whose_home_is_its_partition(yard, limit):
    yard.limit("errand", "work", concurrency=1)
    name = next(name for name in "abcdef" if find_home(name) != choose_home("work", PARTITIONS))
    yard.limit("errand", "work", group=name, **limit)
    yard.enqueue_many([JOB])
    (job,) = take(yard, now=NOW)
    yard.enqueue_many([JOB | {"group": name}])
    assert take(yard, now=NOW) == []
    yard.complete(job, now=NOW)
    (other,) = take(yard, now=NOW)
    assert other.group == name
    yard.complete(other, now=NOW)
    assert [member for member in list_counted(yard) if "\0l" in member] == []


def test_a_job_that_its_group_refuses_does_not_count_against_the_rate_of_the_queue(yard):
    yard.limit("errand", "work", rate="20/s burst 3", concurrency=0)
    yard.limit("errand", "work", group="a", concurrency=1)
    begin(yard, find_ids(find_others()[0], 3), now=NOW)
    assert len(take(yard, now=NOW)) == 1
    assert take(yard, now=NOW) == []
    begin(yard, find_ids(find_others()[0], 3, "b"), "b", now=NOW)
    assert len(take(yard, now=NOW)) == 2


def test_a_rate_holds_for_all_partitions_together(yard):
    yard.limit("errand", "work", concurrency=0, rate="20/s")
    for number in range(PARTITIONS):
        begin(yard, find_ids(number, 10), "", now=NOW)
    moments, now = [], NOW
    while len(moments) < 40:
        taken = take(yard, now=now)
        moments += [now - NOW] * len(taken)
        now += taken.wait or 1
    assert moments == list(range(0, 2000, 50)), "evenly, and as often as it says"


def test_a_partition_has_one_turn_in_a_rate_however_often_it_asks(yard):
    yard.limit("errand", "work", concurrency=0, rate="100/s burst 1")
    home = yard.keys.partition("errand", choose_home("work", PARTITIONS)).root

    def ask(number):
        return yard.client.fcall("sb_admit", 1, home, "admit", "work", NOW, "", f"{number}-1", "1-x", "more")[1]

    asked = [0, 1, 2, 1, 2, 1, 3, 1, 2]
    assert [ask(number) for number in asked] == ["free", "10", "20", "10", "20", "10", "30", "10", "20"]


def test_jobs_that_run_without_a_limit_count_when_one_is_set(yard):
    yard.limit("errand", "work", concurrency=0)
    start_everywhere(yard, 3, "a")
    running = take(yard, 8)
    assert {job.homes for job in running} == {()}
    yard.limit("errand", "work", group="a", concurrency=8)
    assert take(yard) == []
    yard.limit("errand", "work", group="a", concurrency=0)
    yard.limit("errand", "work", concurrency=9)
    assert len(take(yard)) == 1
    assert yard.renew(running, LEASE) == [""] * 8
    yard.complete_many((job, None) for job in running)
    assert len(take(yard)) == 3


@pytest.mark.parametrize("queues", [{"concurrency": 8}, {"groups": {"concurrency": 8}}])
def test_jobs_that_run_without_a_limit_count_when_a_version_declares_one(yard, queues):
    yard.limit("errand", "work", concurrency=0)
    start_everywhere(yard, 3, "a")
    assert len(take(yard, 8)) == 8
    yard.publish(machine("errand", STATES, context={"group": ""}, queues={"work": queues}))
    yard.limit("errand", "work")
    assert take(yard) == []


def test_a_home_that_lost_its_jobs_counts_them_again_when_a_lease_helper_renews_them(yard):
    yard.limit("errand", "work", group="a", concurrency=2)
    begin(yard, find_ids(find_others()[0], 2))
    begin(yard, find_ids(find_others()[0], 4, "b"), "")
    held = take(yard)
    assert len(held) == LIMIT
    for number in range(PARTITIONS):
        partition = yard.keys.partition("errand", number)
        for member in yard.client.zrange(partition.members("work"), 0, -1):
            if " " in member:
                yard.client.zrem(partition.members("work"), member)
    from machines.worker.lease_helper import _make_job

    kept = [_make_job(type(held[0]), job.root, LEASE, job.id, job.token) for job in held]
    assert yard.renew(kept, LEASE) == [""] * LIMIT
    assert take(yard) == []
    assert {job.homes for job in kept} == {job.homes for job in held}


def test_marks_of_partitions_whose_jobs_are_gone_are_removed(yard):
    yard.limit("errand", "work", concurrency=0)
    yard.limit("errand", "work", group="a", rate="1/h")
    for number in find_others():
        begin(yard, find_ids(number, 2), now=NOW)
    while (taken := take(yard, now=NOW)) or "rate" not in taken.hint:
        pass
    assert any("a\0w" in member for member in list_counted(yard))
    yard.purge("errand", "work", place="ready", actor="ann", reason="because")
    name = next(name for name in map(str, range(100)) if find_home(name) == find_home() and name != "a")
    yard.limit("errand", "work", group=name, rate="1/h")
    begin(yard, find_ids(find_others()[0], 1, name), name, now=NOW)
    take(yard, now=NOW + 200_000)
    assert list_counted(yard) == []


def test_a_queue_keeps_its_home_when_its_machine_grows(yard):
    ids = [f"a{number}" for number in range(40)]
    begin(yard, [id for id in ids if choose_partition(id, 12) < PARTITIONS], "")
    assert len(take(yard)) == LIMIT
    begin(yard, [id for id in ids if choose_partition(id, 12) >= PARTITIONS], "")
    Repartition(yard.client, yard.keys, "errand", 12, settle=0, max_wait=0).run()
    grown = Engine(yard.client, prefix=yard.keys.prefix)
    assert take(grown) == []
    grown.limit("errand", "work", concurrency=LIMIT + 2)
    assert len(take(grown)) == 2
    assert grown.stats("errand")["work"].concurrency == LIMIT + 2


def test_a_machine_that_grows_from_one_partition_keeps_its_limit(engine, prefix):
    engine.publish(machine("errand", STATES, context={"group": ""}, queues={"work": {"concurrency": LIMIT}}))
    begin(engine, find_ids(0, LIMIT), "")
    held = take(engine)
    assert ([job.homes for job in held], len(list_counted(engine))) == ([()] * LIMIT, 0), "nobody is asked"
    begin(engine, [f"b{number}" for number in range(12)], "")
    Repartition(engine.client, engine.keys, "errand", 4, settle=0, max_wait=0).run()
    grown = Engine(engine.client, prefix=prefix)
    assert take(grown) == []
    grown.complete_many((job, None) for job in held)
    assert len(take(grown, now=grown.read_clock() + 5000)) == LIMIT


def test_jobs_that_run_count_from_the_moment_a_machine_grows(engine, prefix, monkeypatch):
    engine.publish(machine("errand", STATES, context={"group": ""}, queues={"work": {"concurrency": LIMIT}}))
    begin(engine, find_ids(0, LIMIT), "")
    held = take(engine)
    begin(engine, [f"b{number}" for number in range(12)], "")
    grow, grown = Repartition._grow, []

    def take_in_between(self):
        monkeypatch.setattr(repartitioning, "apply_rules", lambda *_, **__: grown.extend(take(engine)))
        grow(self)

    monkeypatch.setattr(Repartition, "_grow", take_in_between)
    Repartition(engine.client, engine.keys, "errand", 4, settle=0, max_wait=0).run()
    assert grown == []
    assert {job.id for job in held} <= {member[2:].split()[0] for member in list_counted(engine)}


def test_shares_that_the_library_before_stored_are_limits_of_all(yard):
    for partition in (yard.keys.partition("errand", number) for number in range(PARTITIONS)):
        rules = f"{partition.root}:q:work:rules"
        yard.client.hdel(rules, "declared_whole")
        yard.client.hset(rules, mapping={"declared_concurrency": 2, "declared_rate": "40/4000"})
    stats = yard.stats("errand")["work"]
    assert (stats.concurrency, stats.rate) == (8, "40/s")
    start_everywhere(yard)
    now = yard.read_clock()
    assert sum(len(take(yard, now=now + 1000 * turn)) for turn in range(1, 12)) == 8


def test_a_caller_that_has_nothing_admitted_gets_the_share_of_its_partition(yard):
    begin(yard, find_ids(1, 3), "")
    root = yard.keys.partition("errand", 1).root
    taken = [yard.client.fcall("sb_take", 1, root, "work", "node", 10, 30_000, "", f"n{number}") for number in (1, 2)]
    assert [(len(reply[3::6]), reply[1]) for reply in taken] == [(1, "busy"), (0, "busy")]


def test_the_ends_of_more_jobs_than_a_call_may_have_free_all_places(yard):
    yard.limit("errand", "work", concurrency=5000)
    yard.enqueue_many([JOB for _ in range(1600)])
    taken = []
    while len(taken) < 1600:
        taken += take(yard, 1000)
    assert yard.renew(taken, LEASE) == [""] * 1600
    yard.complete_many((job, None) for job in taken)
    assert [member for member in list_counted(yard) if "\0l" in member] == []


def test_a_home_that_does_not_answer_admits_nothing(yard, monkeypatch):
    begin(yard, find_ids(1, 2), "")
    lose_calls(yard, monkeypatch, "admit")
    taken = take(yard)
    assert (list(taken), yard.queues("errand")["work"]["leased"]) == ([], 0)
    assert taken.wait > 0, "it is asked again"
    monkeypatch.undo()
    assert len(take(yard, now=yard.read_clock() + 2000)) == 1, "one job asks whether there is room"


def test_a_queue_without_limits_asks_nobody(yard, monkeypatch):
    yard.limit("errand", "work", concurrency=0)
    start_everywhere(yard)
    called = []
    many = yard._caller.many
    monkeypatch.setattr(yard._caller, "many", lambda calls: called.extend(calls) or many(calls))
    taken = take(yard, 100)
    yard.complete_many((job, None) for job in taken)
    assert {name for name, *_ in called} == {"sb_complete"}


def test_a_queue_or_a_group_of_a_slow_rate_rests(yard):
    yard.limit("errand", "work", concurrency=0, rate="1/20m")
    start_everywhere(yard, 3, "a")
    assert len(take(yard, now=NOW + 1000)) == 1
    take(yard, now=NOW + 1001)
    assert take(yard, now=NOW + 1002).wait > 1000
    yard.limit("errand", "work", concurrency=0, rate="none")
    yard.limit("errand", "work", group="a", rate="1/20m")
    assert len(take(yard, now=NOW + 2000)) == 1
    take(yard, now=NOW + 2001)
    assert take(yard, now=NOW + 2002).wait > 1000


def test_places_that_one_take_leaves_are_there_for_the_next(yard):
    yard.limit("errand", "work", concurrency=3)
    begin(yard, find_ids(1, 9), "")
    held = take(yard, now=NOW + 1000)
    assert take(yard, now=NOW + 1001) == []
    yard.complete_many([(job, None) for job in held], now=NOW + 1002)
    assert [len(take(yard, count=1, now=NOW + 1003)) for _ in range(4)] == [1, 1, 1, 0]


def test_places_of_a_group_that_one_take_leaves_are_there_for_the_next(yard):
    yard.limit("errand", "work", concurrency=0)
    yard.limit("errand", "work", group="a", concurrency=12)
    begin(yard, find_ids(find_others()[0], 36))
    held = [job for _ in range(9) for job in take(yard, count=12, now=NOW + 1000)]
    assert len(held) == 12
    assert take(yard, now=NOW + 1001) == []
    yard.complete_many([(job, None) for job in held], now=NOW + 1002)
    assert sum(len(take(yard, count=1, now=NOW + 1003)) for _ in range(14)) == 12
