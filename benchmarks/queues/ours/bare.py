"""Enqueues bare jobs, which belong to no instance."""

from __future__ import annotations

from functools import cache

from machines.engine import Engine

from . import machine

JOB = {"machine": machine.NAME, "src": "noop", "queue": machine.QUEUE}


def many(count: int) -> None:
    engine = machine.engine()
    for at in range(0, count, machine.BATCH):
        found = engine.enqueue_many([JOB] * min(machine.BATCH, count - at))
        if (failed := next((each for each in found if isinstance(each, Exception)), None)) is not None:
            raise failed


def one(sent: int) -> None:
    _engine().enqueue(machine.NAME, "noop", {"sent": sent}, queue=machine.QUEUE)


def slow(seconds: float) -> None:
    _engine().enqueue(machine.NAME, "noop", {"pause": int(seconds * 1000)}, queue=machine.QUEUE)


@cache
def _engine() -> Engine:
    return machine.engine()
