"""Runs, and workers that do their work in this process."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from machines.engine import Engine
from machines.engine.errors import LeaseLost
from machines.mapreduce import MapReduce, Run
from machines.mapreduce.store import CHUNK, RUN
from machines.worker.job import Job
from machines.worker.registry import discover
from tests.worker.builders import Running

QUEUES = ((RUN, "split"), (CHUNK, "map"), (RUN, "reduce"), (RUN, "remove"))


def made(engine: Engine, items: Iterable[Any] = (), **given: Any) -> MapReduce:
    """A run with these items; not begun."""
    run = MapReduce("totals", engine=engine, **given)
    run.add_items(items)
    return run


def worked(engine: Engine, run: Run) -> Any:
    """Begin it, and wait for the result while a worker works."""
    run.map()
    with Running(engine, discover()):
        return run.reduce(timeout=60)


def step(engine: Engine, machine: str, queue: str, worker: str = "w") -> Job:
    """Take the next job, run its handler and complete it, as a worker does, also one that gives its job away."""
    (taken,) = engine.take(machine, queue, worker)
    job = Job(taken)
    with suppress(LeaseLost):
        engine.complete(taken, discover().get(taken.src).function(job))
    return job


def work_off(engine: Engine) -> int:
    """All jobs that are ready, one after the other in this thread; how many."""
    done = 0
    while found := [(machine, queue) for machine, queue in QUEUES if ready(engine, machine, queue)]:
        step(engine, *found[0])
        done += 1
    return done


def ready(engine: Engine, machine: str, queue: str) -> int:
    return engine.queues(machine).get(queue, {}).get("ready", 0)


def counts(engine: Engine, machine: str) -> dict[str, int]:
    """Instances by state, without the states where there are none."""
    return {state: count for state, count in engine.counts(machine).items() if count}
