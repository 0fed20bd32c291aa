"""Places in limits of queues and of groups, which are free once no worker holds their job, and are lost by nothing."""

import pytest

from machines.engine import Engine
from machines.engine.connection import library
from machines.engine.keys import choose_home
from tests.engine.builders import NOW, machine

from .test_group_admissions import LEASE, PARTITIONS, find_home, find_ids, list_counted, take
from .test_queue_admissions import STATES, WHO, begin


@pytest.fixture
def yard(engine, prefix):
    several = Engine(engine.client, prefix=prefix, partitions=PARTITIONS)
    several.publish(machine("errand", STATES, context={"group": ""}, queues={"work": {}}))
    return several


LIMITS = pytest.mark.parametrize("limited", ["queue", "group"])


def limit_one(engine, limited, concurrency=1):
    """Limits the queue, or its group a, to so many jobs."""
    engine.limit("errand", "work", concurrency=0 if limited == "group" else concurrency)
    if limited == "group":
        engine.limit("errand", "work", group="a", concurrency=concurrency)
    return find_home("a") if limited == "group" else choose_home("work", PARTITIONS)


@LIMITS
@pytest.mark.parametrize("is_home", [True, False], ids=["at home", "elsewhere"])
@pytest.mark.parametrize("end", ["withdraw", "leave", "lose", "bury", "delete"])
def test_a_place_is_free_at_once_when_its_job_is_taken_from_its_worker(yard, limited, is_home, end):
    home = limit_one(yard, limited)
    number = home if is_home else (home + 1) % PARTITIONS
    begin(yard, ids := find_ids(number, 1), "a", now=NOW)
    (job,) = take(yard, now=NOW)
    begin(yard, find_ids((home + 2) % PARTITIONS, 2), "a", now=NOW)
    assert take(yard, now=NOW) == []
    later = NOW + (LEASE + 1000 if end in ("lose", "bury") else 1)
    if end == "bury":
        yard.client.hset(f"{job.root}:job:{job.id}", "attempts", 1)
    {
        "withdraw": lambda: yard.withdraw("errand", job, now=later, **WHO),
        "leave": lambda: yard.force("errand", ids[0], "idle", now=later, **WHO),
        "lose": lambda: None,
        "bury": lambda: None,
        "delete": lambda: yard.delete("errand", ids[0], **WHO),
    }[end]()
    if is_home and end not in ("lose", "bury"):
        assert [member for member in list_counted(yard) if "\0l" in member] == []
    yard.drive(["errand"], now=later)
    assert [member for member in list_counted(yard) if "\0l" in member] == []
    assert len(take(yard, now=later)) == 1, "the place was offered to a partition that waits"


@LIMITS
@pytest.mark.parametrize("where", [0, 1], ids=["at home", "elsewhere"])
@pytest.mark.parametrize("end", ["complete", "complete many", "fail", "bury", "hand back"])
def test_a_job_that_was_leased_before_its_limit_was_set_frees_its_place_when_it_ends(yard, limited, where, end):
    home = choose_home("a" if limited == "group" else "work", PARTITIONS)
    group = "a" if limited == "group" else ""
    begin(yard, find_ids((home + where) % PARTITIONS, 2), group, now=NOW)
    jobs = take(yard, now=NOW)
    assert [job.homes for job in jobs] == [(), ()]
    limit_one(yard, limited, 2)
    begin(yard, find_ids((home + 2) % PARTITIONS, 4), group, now=NOW)
    assert take(yard, now=NOW) == []
    {
        "complete": lambda: [yard.complete(job, now=NOW) for job in jobs],
        "complete many": lambda: yard.complete_many([(job, None) for job in jobs], now=NOW),
        "fail": lambda: [yard.fail(job, "no", now=NOW) for job in jobs],
        "bury": lambda: [yard.fail(job, "no", retry=False, now=NOW) for job in jobs],
        "hand back": lambda: [yard.hand_back(job, delay=60_000, now=NOW) for job in jobs],
    }[end]()
    yard.drive(["errand"], now=NOW)
    assert [member for member in list_counted(yard) if "\0l" in member] == []
    assert len(take(yard, now=NOW)) == 2, "the places were offered to the partition that waits"


@LIMITS
def test_the_check_of_all_jobs_forgets_places_that_nothing_counts_and_partitions_that_no_longer_wait(yard, limited):
    home = limit_one(yard, limited)
    for number in range(3):
        begin(yard, find_ids((home + 1 + number) % PARTITIONS, 1), "a", now=NOW)
    (job,) = take(yard, now=NOW)
    assert take(yard, now=NOW) == []
    assert yard.mend("errand", now=NOW).total == 0
    assert {member.split("\0")[1][0] for member in list_counted(yard)} >= {"l", "w"}, "both are needed"
    limit_one(yard, limited, 0)
    yard.withdraw("errand", job, now=NOW, **WHO)
    yard.drive(["errand"], now=NOW)
    assert yard.mend("errand", now=NOW + 200_000).total == 0
    assert list_counted(yard) == [member for member in list_counted(yard) if "\0h" in member]


@LIMITS
def test_a_place_that_is_offered_in_vain_is_for_the_next_partition_that_waits(yard, limited):
    home = limit_one(yard, limited)
    others = [number for number in range(PARTITIONS) if number != home]
    for number in others:
        begin(yard, find_ids(number, 2))
    (job,) = take(yard)
    assert take(yard) == []
    first = others.index(int(job.id.partition("-")[0]))
    for id in find_ids(others[(first + 1) % 3], 2):
        yard.force("errand", id, "idle", **WHO)
    yard.complete(job)
    (again,) = take(yard)
    assert again.instance in find_ids(others[(first + 2) % 3], 2)


@LIMITS
@pytest.mark.parametrize("rate", [None, "20/s"])
@pytest.mark.parametrize("answer", ["first", "second"])
def test_calls_that_come_twice_pass_no_limit_and_leave_no_place_behind(yard, monkeypatch, limited, rate, answer):
    limit_one(yard, limited, 2)
    yard.limit("errand", "work", group="a" if limited == "group" else None, concurrency=2, rate=rate)
    for number in range(PARTITIONS):
        begin(yard, find_ids(number, 6), now=NOW)
    many, words = yard._caller.many, set()

    def repeat(calls):
        words.update(word for _, _, (word, *_) in calls)
        answers = many(calls), many(calls)
        return answers[answer == "second"]

    monkeypatch.setattr(yard._caller, "many", lambda calls: (repeat if calls[0][0] == "sb_admit" else many)(calls))
    running, done, now = [], set(), NOW
    while len(done) < 6 * PARTITIONS:
        taken = take(yard, now=now)
        running += taken
        assert len(running) <= 2
        if running:
            yard.complete(job := running.pop(0), now=now)
            done.add(job.instance)
        now += max(taken.wait or 0, 1)
        assert now < NOW + 60_000, "it does not stand still"
    assert words >= {"admit", "free", "back"}
    assert list_counted(yard) == []


@pytest.mark.parametrize("damaged", [None, "x"], ids=["gone", "damaged"])
@pytest.mark.parametrize("group", ["", "a"], ids=["plain", "of a group"])
def test_a_lost_place_is_found_beside_one_of_a_job_that_runs(yard, group, damaged):
    home = limit_one(yard, "queue", 2)
    begin(yard, find_ids((home + 1) % PARTITIONS, 2), group, now=NOW)
    running, lost = take(yard, now=NOW)
    yard.withdraw("errand", lost, now=NOW, **WHO)
    if damaged:
        yard.client.set(f"{lost.root}:job:{lost.id}", damaged)
    yard.client.fcall("sb_tick", 1, lost.root, NOW, 200, "look", "hears")
    begin(yard, find_ids((home + 2) % PARTITIONS, 3), group, now=NOW)
    found, now = [], NOW
    while now < NOW + LEASE - 5000:
        found += take(yard, now=now)
        now += 500
    assert len(found) == 1, "and the place of the other stays its own"
    yard.complete(running, now=now)


def test_a_place_at_a_home_that_nobody_else_asks_is_found_though_the_server_restarted(yard):
    yard.limit("errand", "work", concurrency=0)
    begin(yard, find_ids((find_home() + 1) % PARTITIONS, 1), "a", now=NOW)
    (job,) = take(yard, now=NOW)
    yard.limit("errand", "work", group="a", concurrency=1)
    yard.client.function_load(library.text(), replace=True)
    yard.complete(job, now=NOW)
    begin(yard, find_ids(find_home(), 1), "a", now=NOW)
    found, now = [], NOW
    while not found:
        found = take(yard, now=now)
        now += 500
        assert now < NOW + LEASE


def test_a_place_is_found_though_the_server_forgot_that_its_job_was_withdrawn(yard):
    home = limit_one(yard, "queue")
    begin(yard, find_ids((home + 1) % PARTITIONS, 1), "a", now=NOW)
    (job,) = take(yard, now=NOW)
    yard.withdraw("errand", job, now=NOW, **WHO)
    yard.client.fcall("sb_tick", 1, job.root, NOW, 200, "look", "hears")
    begin(yard, find_ids((home + 2) % PARTITIONS, 1), "a", now=NOW)
    found, now = [], NOW
    while not found:
        found = take(yard, now=now)
        now += 500
    assert now < NOW + LEASE
