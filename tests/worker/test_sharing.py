"""Several workers on one Redis: who does what, and what becomes of the work of one that dies."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter

from machines.engine import Engine
from machines.engine.transfer.repartitioning import Repartition
from machines.worker.duties.due_work import PartitionShares
from machines.worker.intake import fetcher
from machines.worker.registry import Registry
from tests.engine.builders import machine, publish
from tests.installation.processes import eventually

from . import builders
from .builders import Running, registry_of

JOBS = 300
WORKERS = 10


def lamp(name="lamp", after="200ms"):
    return machine(name, {"On": {"after": {after: "Off"}}, "Off": {}})


def test_ten_idle_workers_share_the_jobs_that_come_one_by_one(engine):
    engine.publish(builders.errand())
    done: Counter[str] = Counter()
    lock, finished = threading.Lock(), threading.Semaphore(0)

    def handler_of(name):
        def run(job):
            with lock:
                done[name] += 1
            job.wait(0.005)
            finished.release()

        return run

    with contextlib.ExitStack() as stack:
        for number in range(WORKERS):
            name = f"w{number}"
            worker = stack.enter_context(Running(engine, registry_of(run=handler_of(name)), id=name, concurrency=1))
            eventually(lambda worker=worker: worker._listener.is_settled and worker.served_queues.served, "it hears")
        for number in range(JOBS):
            engine.create("errand", f"e{number}")
            if number % 5 == 4:
                for _ in range(5):
                    assert finished.acquire(timeout=60)
        eventually(lambda: engine.counts("errand")["done"] == JOBS, "all are done")
    assert sum(done.values()) == JOBS
    assert len(done) == WORKERS, f"each has had some: {done}"
    assert max(done.values()) <= JOBS // 2, f"none has had most of them: {done}"


def test_a_worker_that_runs_serves_the_partitions_that_a_machine_grows_to(engine, monkeypatch):
    monkeypatch.setattr(PartitionShares, "RELIST", 0.2)
    monkeypatch.setattr(fetcher, "REFRESH", 0.2)
    publish(engine, lamp())
    with Running(engine, Registry(), tick=0.2) as worker:
        eventually(lambda: worker._shares.all, "it has looked")
        Repartition(engine.client, engine.keys, "lamp", 4).run()
        for number in range(20):
            engine.create("lamp", f"l{number}")
        roots = {engine.keys.partition("lamp", number).root for number in range(4)}
        eventually(lambda: roots <= worker._fetcher._roots.keys(), "it hears their bells")
        eventually(lambda: engine.counts("lamp")["Off"] == 20, "their timers have fired")


def test_workers_divide_the_partitions_and_each_timer_fires_once(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=16)
    publish(engine, lamp())
    with contextlib.ExitStack() as stack:
        workers = [
            stack.enter_context(Running(engine, Registry(), id=f"w{number}", tick=60, sweep=60)) for number in range(3)
        ]
        shares = [worker._shares for worker in workers]
        eventually(lambda: sum(len(each.own) for each in shares) == 16, "each partition has one owner")
        eventually(lambda: all(worker._listener.is_settled for worker in workers), "they hear the bells")
        for number in range(40):
            engine.create("lamp", f"l{number}")
        eventually(lambda: engine.counts("lamp")["Off"] == 40, "the lamps are off")
    assert {len(engine.history("lamp", f"l{number}")) for number in range(40)} == {2}
    assert engine.client.zcard(engine.keys.shares) == 0, "they have left"
    engine.client.close()


def test_the_partitions_of_a_worker_that_died_are_taken_over(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=16)
    publish(engine, lamp())
    engine.wakeups.join("dead")
    with Running(engine, Registry(), id="alive", tick=60, sweep=60) as worker:
        eventually(lambda: 0 < len(worker._shares.own) < 16, "some are the dead worker's")
        for number in range(40):
            engine.create("lamp", f"l{number}")
        eventually(lambda: engine.counts("lamp")["Off"] == 40, "the lamps are off")
        assert len(worker._shares.own) == 16
    engine.client.close()
