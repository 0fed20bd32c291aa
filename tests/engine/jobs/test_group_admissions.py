"""Limits of groups whose jobs lie on several partitions: the home of a group admits them."""

import json

import pytest
from redis.exceptions import ConnectionError

from machines.engine import Engine, errors
from machines.engine.keys import choose_home, choose_partition
from machines.engine.transfer.repartitioning import Repartition
from tests.engine.bells import Bells
from tests.engine.builders import NOW, machine

from .counted_jobs import CountedJobs

WHO = {"actor": "ann", "reason": "because"}
PARTITIONS, LIMIT, LEASE = 4, 2, 30_000
STATES = {
    "idle": {"on": {"go": "work"}},
    "work": {"invoke": {"src": "run", "queue": "work", "group": "group", "onDone": "over"}},
    "over": {},
}


@pytest.fixture
def yard(engine, prefix):
    several = Engine(engine.client, prefix=prefix, partitions=PARTITIONS)
    queues = {"work": {"groups": {"concurrency": LIMIT}}}
    several.publish(machine("errand", STATES, context={"group": "a"}, queues=queues))
    return several


def find_ids(number, count=20, group="a"):
    """Ids of instances on the partition of a number."""
    names = (f"{group}{n}" for n in range(10_000))
    return [id for id in names if choose_partition(id, PARTITIONS) == number][:count]


def begin(engine, ids, group="a", **options):
    for id in ids:
        engine.create("errand", id, data={"group": group}, **options)
        engine.fire("errand", id, "go", **options)


def find_home(group="a"):
    return choose_home(group, PARTITIONS)


def find_others(group="a"):
    return [number for number in range(PARTITIONS) if number != find_home(group)]


def take(engine, count=10, **options):
    return engine.take("errand", "work", "w", count=count, **options)


def list_counted(engine):
    """The jobs that homes count, and those that are to be checked; both are empty when nothing is left behind."""
    roots = engine.wakeups.roots(["errand"])
    keys = [key for root in roots for key in (f"{root}:q:work:members", f"{root}:q:work:admitted")]
    return [member for key in keys for member in engine.client.zrange(key, 0, -1)]


def lose_calls(engine, monkeypatch, mode):
    """Have calls of ``sb_admit`` in this mode fail until the patch is undone."""
    many = engine._caller.many

    def lose(calls):
        if calls[0][2][0] == mode:
            raise errors.EngineUnavailable("no answer")
        return many(calls)

    monkeypatch.setattr(engine._caller, "many", lose)


def test_no_group_has_more_jobs_at_a_time_than_its_limit_and_each_is_done_once(yard):
    for group in "abc":
        begin(yard, [f"{group}{number}" for number in range(30)], group)
    yard.enqueue_many([{"machine": "errand", "src": "run", "queue": "work", "group": "a"} for _ in range(20)])
    counted = CountedJobs(yard, 110)
    counted.run(8)
    assert set(counted.done.values()) == {1}
    assert max(counted.most.values()) <= LIMIT
    assert list_counted(yard) == []


def test_jobs_that_are_refused_are_back_where_they_were_and_their_attempts_do_not_count(yard):
    other = find_others()[0]
    ids = find_ids(other, 5)
    begin(yard, ids)
    first = take(yard)
    assert [job.instance for job in first] == ids[:2]
    before = yard.stats("errand")["work"]
    assert take(yard) == []
    assert (before.taken, before.held, yard.stats("errand")["work"].taken) == (2, 3, 2)
    yard.complete_many([(job, None) for job in first])
    second = take(yard)
    assert [(job.instance, job.attempt, job.log) for job in second] == [(id, 1, ()) for id in ids[2:4]]


def test_partitions_take_turns_in_a_place_that_becomes_free(yard):
    yard.limit("errand", "work", group="a", concurrency=1)
    others = find_others()
    for number in others:
        begin(yard, find_ids(number, 3))
    order = []
    (job,) = take(yard)
    while job:
        order.append(int(job.id.partition("-")[0]))
        assert take(yard) == []
        bells = [Bells(yard, "errand", number) for number in others]
        yard.complete(job)
        rung = [number for number, each in zip(others, bells, strict=True) if "job work" in each.heard()]
        assert len(rung) == (len(order) < 9), "the place is offered to one other partition"
        for each in bells:
            each.close()
        (job,) = take(yard) or [None]
    rounds = [set(order[start : start + len(others)]) for start in range(0, 9, len(others))]
    assert rounds == [set(others)] * 3


@pytest.mark.parametrize("end", ["complete", "complete many", "fail", "bury", "hand back"])
def test_the_end_of_a_job_frees_its_place_at_the_home(yard, end):
    begin(yard, find_ids(find_others()[0], 1))
    (job,) = take(yard)
    assert job.homes == (("a", yard.keys.partition("errand", find_home()).root),)
    assert len(list_counted(yard)) == 2
    {
        "complete": lambda: yard.complete(job),
        "complete many": lambda: yard.complete_many([(job, None), (job, None)]),
        "fail": lambda: yard.fail(job, "no"),
        "bury": lambda: yard.fail(job, "no", retry=False),
        "hand back": lambda: yard.hand_back(job, delay=1000),
    }[end]()
    assert list_counted(yard) == []


@pytest.mark.parametrize("end", ["sweep", "withdraw"])
def test_a_place_that_was_not_freed_is_found_by_the_next_jobs_that_are_refused(yard, end):
    one, other, *_ = find_others()
    begin(yard, find_ids(one, 2), now=NOW)
    lost = take(yard, now=NOW)
    for job in lost:
        if end == "withdraw":
            yard.withdraw("errand", job, **WHO)
    if end == "sweep":
        yard.sweep("errand", now=NOW + LEASE)
    begin(yard, find_ids(other, 2), now=NOW)
    wanted = set() if end == "withdraw" else {job.instance for job in lost}
    later, found = NOW + LEASE, []
    while len(found) < 2:
        taken = take(yard, now=later)
        found += taken
        later += taken.wait or 1
    assert later < NOW + 2 * LEASE
    assert len({job.instance for job in found} | wanted) >= 2
    assert take(yard, now=later) == []
    assert sum(" " in member for member in list_counted(yard)) == 2 * LIMIT, "as members, and to be checked"


def test_a_place_is_found_though_the_partition_of_another_is_away_whose_place_stays_taken(yard, monkeypatch):
    away, *others = find_others()
    for number in (away, *others):
        begin(yard, find_ids(number, 2 if number == others[1] else 1), now=NOW)
    assert len(take(yard, now=NOW, partitions={away, others[0]})) == LIMIT
    yard.sweep("errand", now=NOW + LEASE)
    send, root = yard._caller._send, yard.keys.partition("errand", away).root

    def lose(sent):
        lost = ConnectionError("no answer")
        return [lost if key.startswith(root) else send([(key, words)])[0] for key, words in sent]

    monkeypatch.setattr(yard._caller, "_send", lose)
    found, now = [], NOW + LEASE
    while now < NOW + 2 * LEASE:
        taken = take(yard, now=now, partitions={others[1]})
        found += taken
        now += max(taken.wait or 0, 500)
    assert len(found) == 1


def test_a_job_that_comes_back_keeps_its_one_place_under_its_new_token(yard):
    begin(yard, find_ids(find_others()[0], 1), now=NOW)
    (job,) = take(yard, now=NOW)
    yard.sweep("errand", now=NOW + LEASE)
    (again,) = take(yard, now=NOW + LEASE)
    assert (again.id, again.token != job.token) == (job.id, True)
    with pytest.raises(errors.LeaseLost):
        yard.complete(job)
    assert len(list_counted(yard)) == 2
    yard.complete(again)
    assert list_counted(yard) == []


def test_a_home_that_lost_its_jobs_counts_them_again_when_their_leases_are_renewed(yard):
    begin(yard, find_ids(find_others()[0], 4))
    held = take(yard)
    home = yard.keys.partition("errand", find_home())
    before = yard.client.zrange(home.admitted("work"), 0, -1)
    yard.client.delete(home.members("work"), home.admitted("work"))
    assert yard.renew(held, LEASE) == ["", ""]
    counted = [member for member in before if "\0l" in member]
    assert (len(counted), yard.client.zrange(home.admitted("work"), 0, -1)) == (LIMIT, counted)
    assert take(yard) == []


def test_a_home_that_does_not_answer_admits_nothing(yard, monkeypatch):
    begin(yard, find_ids(find_others()[0], 2))
    lose_calls(yard, monkeypatch, "admit")
    taken = take(yard)
    assert (list(taken), yard.queues("errand")["work"]["leased"]) == ([], 0)
    assert taken.wait > 0, "it is asked again"
    monkeypatch.undo()
    assert len(take(yard, now=yard.read_clock() + taken.wait)) == 1, "one job asks whether there is room"


def test_a_take_tells_that_jobs_may_be_leased_that_it_could_not_give_back(yard, monkeypatch):
    begin(yard, find_ids(find_others()[0], 5))
    assert (len(take(yard)), take(yard).unanswered) == (LIMIT, False)
    yard.limit("errand", "work", group="a", concurrency=1)
    lose_calls(yard, monkeypatch, "back")
    taken = take(yard)
    assert (list(taken), taken.unanswered, taken.wait > 0) == ([], True, True)


def test_a_rate_holds_for_all_partitions_together(yard):
    yard.limit("errand", "work", group="a", concurrency=0, rate="20/s")
    for number in range(PARTITIONS):
        begin(yard, find_ids(number, 10), now=NOW)
    moments, now = [], NOW
    while len(moments) < 40:
        taken = take(yard, now=now)
        moments += [now - NOW] * len(taken)
        now += taken.wait or 1
    assert moments == list(range(0, 2000, 50)), "evenly, and as often as it says"


def test_a_group_goes_on_whose_job_was_ready_when_another_partition_asked_for_the_first_time(yard):
    yard.limit("errand", "work", group="a", concurrency=1, rate="1/s burst 2")
    job, home, other = {"machine": "errand", "src": "run", "queue": "work"}, find_home(), find_others()[0]
    yard.enqueue_many([job | {"group": "a"}, job | {"group": "a"}])
    near = find_ids(home, 1, "x") + find_ids(other, 1, "x")
    yard.enqueue_many([job | {"priority": 9, "unique": near[0]}, job | {"group": "a", "unique": near[1]}])
    (first,) = take(yard, count=1, partitions={home}, now=NOW)
    assert first.group == "", "the first job of the group is ready, behind it"
    found, now = take(yard, partitions={other}, now=NOW), NOW
    assert len(found) == 1
    yard.complete(found[0], now=NOW)
    while len(found) < 3:
        taken = take(yard, now=now)
        yard.complete_many([(each, None) for each in taken], now=now)
        found += taken
        now += taken.wait or 1000
        assert now < NOW + 20_000, "the group stands still"


def test_a_paused_group_rests_on_all_partitions_and_goes_on_when_it_is_resumed(yard):
    for number in range(PARTITIONS):
        begin(yard, find_ids(number, 1))
    yard.pause("errand", "work", group="a", **WHO)
    assert take(yard) == []
    yard.resume_queue("errand", "work", group="a", **WHO)
    assert len(take(yard)) == LIMIT


def test_a_limit_below_the_number_of_partitions_can_be_set_while_jobs_wait(yard):
    for number in range(PARTITIONS):
        begin(yard, find_ids(number, 2))
    yard.limit("errand", "work", group="a", concurrency=1)
    assert len(take(yard)) == 1
    yard.limit("errand", "work", group="a", concurrency=3)
    assert len(take(yard)) == 2
    yard.limit("errand", "work", group="a", concurrency=0)
    assert len(take(yard)) == 5


def test_a_group_keeps_its_home_when_its_machine_grows(yard):
    begin(yard, [f"a{number}" for number in range(12)])
    held = take(yard)
    assert len(held) == LIMIT
    Repartition(yard.client, yard.keys, "errand", 12, settle=0, max_wait=0).run()
    grown = Engine(yard.client, prefix=yard.keys.prefix)
    partitions = [grown.keys.partition("errand", number) for number in range(12)]
    assert {grown.client.hget(partition.meta, "homes") for partition in partitions} == {str(PARTITIONS)}
    assert {home for job in take(grown) for _, home in job.homes} <= {each.root for each in partitions[:PARTITIONS]}


def test_limits_that_the_library_before_stored_are_exact_without_a_publication(yard):
    for partition in (yard.keys.partition("errand", number) for number in range(PARTITIONS)):
        yard.client.hset(f"{partition.root}:q:work:rules", "groups", json.dumps({"concurrency": LIMIT, "shares": 4}))
        yard.client.hdel(partition.meta, "homes")
    begin(yard, [f"a{number}" for number in range(12)])
    assert len(take(yard)) == LIMIT


def test_a_caller_that_has_nothing_admitted_gets_the_share_of_its_partition(yard):
    other = find_others()[0]
    root, ids = yard.keys.partition("errand", other).root, find_ids(other, 3)
    begin(yard, ids)
    taken = [yard.client.fcall("sb_take", 1, root, "work", "node", 10, 30_000, "", f"n{number}") for number in (1, 2)]
    assert [len(reply[3::6]) for reply in taken] == [1, 0]
    assert ("home" in taken[0][4], int(taken[1][1]) > 1) == (False, True)
    yard.client.fcall("sb_complete", 1, root, "", "", taken[0][3], taken[0][5], "")
    again = yard.client.fcall("sb_take", 1, root, "work", "node", 10, 30_000, "", "n3")
    assert again[3::6] == [yard.jobs("errand", "work", place="leased")[0].id]


def test_the_ends_of_more_jobs_than_a_call_may_have_free_all_places(yard):
    yard.limit("errand", "work", group="a", concurrency=5000)
    jobs = [{"machine": "errand", "src": "run", "queue": "work", "group": "a", "unique": f"u{n}"} for n in range(1600)]
    yard.enqueue_many(jobs)
    taken = []
    while len(taken) < len(jobs):
        taken += take(yard, 1000)
    assert sum(bool(job.homes) for job in taken) > 1000
    assert yard.renew(taken, LEASE) == [""] * 1600
    yard.complete_many((job, None) for job in taken)
    assert list_counted(yard) == []


def test_a_machine_with_one_partition_asks_nobody(engine, prefix):
    engine.publish(machine("errand", STATES, context={"group": "a"}, queues={"work": {"groups": {"concurrency": 1}}}))
    begin(engine, ["a1", "a2"])
    assert [job.homes for job in take(engine)] == [()]


@pytest.mark.parametrize("further", [{"group": "b"}, {"weight": 2.0}, {}])
def test_an_idempotency_key_that_is_sent_again_with_another_group_makes_no_other_job(yard, further):
    jobs = [yard.enqueue("errand", "run", key="k", **({"group": "a"} | again)) for again in ({}, further)]
    assert jobs[0].id == jobs[1].id
