"""Limits of queues and groups whose jobs lie on all nodes of a cluster."""

from __future__ import annotations

import os
import threading
from collections import Counter

import pytest

from machines.engine import Engine
from tests.engine.builders import door, machine
from tests.engine.jobs.counted_jobs import CountedJobs

LIMIT, GROUPS, JOBS, WORKERS = 3, 30, 20, 6
MANY, INSTANCES = 20, 240  # workers, and instances of three groups


@pytest.fixture
def engine(cluster):
    engine = Engine.from_url(cluster.url, prefix=f"limits-{os.urandom(4).hex()}:", partitions=12)
    engine.publish(door(queues={"work": {"groups": {"concurrency": LIMIT}}}))
    yield engine
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
