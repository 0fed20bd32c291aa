"""Enqueues bare jobs, which belong to no instance."""

from __future__ import annotations

from . import machine

JOB = {"machine": machine.NAME, "src": "noop", "queue": machine.QUEUE}


def send(sent: int = 0, seconds: float = 0) -> None:
    machine.engine().enqueue(machine.NAME, "noop", {"sent": sent, "pause": int(seconds * 1000)}, queue=machine.QUEUE)


def send_many(count: int) -> None:
    for at in range(0, count, machine.BATCH):
        found = machine.engine().enqueue_many([JOB] * min(machine.BATCH, count - at))
        if (failed := next((each for each in found if isinstance(each, Exception)), None)) is not None:
            raise failed
