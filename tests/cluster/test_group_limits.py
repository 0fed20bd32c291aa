"""Limits of queues and groups whose jobs lie on all nodes of a cluster."""

from __future__ import annotations

import os
import threading
from collections import Counter

import pytest

from machines.engine import Engine
from machines.engine.keys import choose_home, choose_partition
from tests.clusters import Cluster
from tests.engine.builders import NOW, door, machine
from tests.engine.jobs.counted_jobs import CountedJobs

LIMIT, GROUPS, JOBS, WORKERS = 3, 30, 20, 6
MANY, INSTANCES = 20, 240  # workers, and instances of three groups


@pytest.fixture
def engine(cluster):
    engine = Engine.from_url(cluster.url, prefix=f"limits-{os.urandom(4).hex()}:", partitions=12)
    engine.publish(door(queues={"work": {"groups": {"concurrency": LIMIT}}}))
    yield engine
    engine.client.close()


@pytest.fixture(scope="module")
def lonely(tmp_path_factory, program_of_this_run):
    """Three primaries without a replica."""
    folder = tmp_path_factory.mktemp("lonely")
    with Cluster(folder, program=program_of_this_run, persistent=True, replicas=0) as cluster:
        yield cluster


@pytest.mark.parametrize("limited", ["group", "queue"])
def test_a_place_that_is_offered_to_a_node_that_is_away_is_for_the_others(lonely, limited):
    engine = Engine.from_url(lonely.url, prefix=f"away-{os.urandom(4).hex()}:", partitions=12)
    engine.publish(door(queues={"work": {"concurrency": 1} if limited == "queue" else {"groups": {"concurrency": 1}}}))
    nodes = [lonely.owner_of(engine.client.keyslot(engine.keys.partition("door", n).root)) for n in range(12)]
    home = choose_home("work" if limited == "queue" else "a", 12)
    away = next(node for node in nodes if node is not nodes[home])
    order = [n % 12 for n in range(home + 1, home + 12)]
    first = next(n for n in order if nodes[n] is not away)
    gone = next(n for n in order[order.index(first) + 1 :] if nodes[n] is away)
    last = next(n for n in reversed(order) if nodes[n] is not away)
    for number in (first, gone, last):
        keys = (f"k{n}" for n in range(1000))
        near = next(key for key in keys if choose_partition(key, 12) == number)
        engine.enqueue("door", "work", group="a", unique=near, now=NOW)
    (job,) = engine.take("door", "work", "w", partitions={first}, now=NOW)
    assert engine.take("door", "work", "w", partitions={gone, last}, now=NOW) == []
    away.kill()
    try:
        engine.complete(job, now=NOW)
        found, now = [], NOW
        while not found:
            found = engine.take("door", "work", "w", partitions={last}, now=now)
            now += max(found.wait or 0, 1)
        assert now < NOW + 5000
    finally:
        away.revive()
        lonely.wait_settled()
    assert engine.take("door", "work", "w", partitions={gone}, now=now) == []
    engine.complete(found[0], now=now)
    while not (found := engine.take("door", "work", "w", partitions={gone}, now=now)):
        now += max(found.wait or 0, 1)
    assert now < NOW + 10_000
    engine.client.close()


def take_in_threads(engine):
    """Take until there is no more, by several workers that race."""
    taken = []

    def take(worker):
        while jobs := engine.take("door", "work", worker, count=5):
            taken.extend(jobs)

    threads = [threading.Thread(target=take, args=(f"w{number}",)) for number in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken


def test_no_group_has_more_jobs_at_a_time_than_its_limit_and_none_has_fewer(engine, cluster):
    engine.enqueue_many([{"machine": "door", "src": "work", "group": f"g{n % GROUPS}"} for n in range(GROUPS * JOBS)])
    left = JOBS
    while left:
        leased = take_in_threads(engine)
        assert Counter(job.group for job in leased) == {f"g{n}": min(LIMIT, left) for n in range(GROUPS)}
        if left == JOBS:
            keys = {engine.client.get_node_from_key(job.root) for job in leased}
            assert len(keys) == 3, "they are on all nodes"
        engine.complete_many([(job, None) for job in leased])
        left -= min(LIMIT, left)


@pytest.mark.parametrize(
    "limits", [{"groups": {"concurrency": LIMIT}}, {"concurrency": 2 * LIMIT}], ids=["group", "queue"]
)
def test_twenty_workers_never_pass_limits_where_instances_lie_on_all_nodes(engine, cluster, limits):
    work = {"src": "run", "queue": "work", "group": "group", "onDone": "over"}
    states = {"idle": {"on": {"go": "work"}}, "work": {"invoke": work}, "over": {}}
    engine.publish(machine("errand", states, context={"group": ""}, queues={"work": limits}))
    for number in range(INSTANCES):
        engine.create("errand", f"i{number}", data={"group": f"g{number % 3}"})
        engine.fire("errand", f"i{number}", "go")
    counted = CountedJobs(engine, INSTANCES)
    counted.run(MANY)
    assert set(counted.done.values()) == {1}
    assert max(counted.most.values()) <= LIMIT if "groups" in limits else counted.most_of_all <= 2 * LIMIT
    assert engine.counts("errand")["over"] == INSTANCES
