"""Limits of groups whose jobs lie on all nodes of a cluster."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from machines.engine import Engine
from tests.engine.builders import door

LIMIT, GROUPS, JOBS, WORKERS = 3, 30, 20, 6


@pytest.fixture
def engine(cluster):
    engine = Engine.from_url(cluster.url, prefix="limits:", partitions=12)
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
