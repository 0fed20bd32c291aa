"""What the workers of these tests do. Work that is watched speaks through lists of the test's own Redis."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from machines.engine import Engine
from machines.worker import Job
from machines.worker.registry import Registry

SHORT = 0.1  # seconds: other jobs end while this one goes on


def quick(job: Job) -> str:
    return job.id


def sleepy(job: Job) -> str:
    time.sleep(SHORT)
    return job.id


def together(jobs: list[Job]) -> list[str]:
    return [job.id for job in jobs]


def fragile(job: Job) -> str:
    """Fails at first."""
    time.sleep(SHORT)
    if job.attempt == 1:
        raise RuntimeError("not yet")
    return job.id


def lethal(job: Job) -> None:
    """Ends its worker each time, without a word."""
    time.sleep(SHORT)
    os.kill(os.getpid(), signal.SIGKILL)


def counted(engine: Engine) -> Any:
    """Notes on the server that its job of a group runs, and each moment at which more do than the limit lets: of these,
    only the ones count whose token still holds the job."""

    def run(job: Job) -> str:
        taken, running = job.taken, f"running:{job.taken.group}"
        mine = f"{taken.root}:job:{taken.id} {taken.token}"
        engine.client.sadd(running, mine)
        marks = [mark.partition(" ") for mark in engine.client.smembers(running)]
        held = [key for key, _, token in marks if engine.client.hget(key, "token") == token]
        engine.client.rpush("counts", len(held))
        time.sleep(SHORT / 20)
        engine.client.srem(running, mine)
        return job.id

    return run


def stubborn(engine: Engine) -> Any:
    """Says that it began, and by whom; goes on when told, and does not care whether the job is still its own."""

    def run(job: Job) -> str:
        engine.client.rpush("begun", f"{os.getpid()} {job.instance}")
        while engine.client.lpop(f"go:{os.getpid()}") is None:
            time.sleep(0.02)
        return str(os.getpid())

    return run


def registry(engine: Engine) -> Registry:
    found = Registry()
    for function in (quick, sleepy, fragile, lethal):
        found.handler(function.__name__)(function)
    found.handler("together", max_jobs=20)(together)
    found.handler("stubborn")(stubborn(engine))
    found.handler("counted")(counted(engine))
    return found
