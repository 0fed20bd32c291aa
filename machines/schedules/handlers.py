"""The job handler of schedules. A job may run twice, or in two workers at a time."""

from __future__ import annotations

from typing import Any

from machines.connections import get_engine
from machines.engine import errors
from machines.worker import Job, handler

from . import execution
from .builtin_machine import SCHEDULES


@handler("schedules.work", machine=SCHEDULES, queue=False)  # the definition names its queue
def work(job: Job) -> dict[str, Any]:
    """Claim what is due and carry it out."""
    engine = get_engine()
    result = execution.work(engine, job.instance, check=job.check)
    if result is None:
        engine.hand_back(job.taken, delay=execution.LOOK)
        raise errors.LeaseLost(job.id, why="an earlier run is still going on")
    return result
