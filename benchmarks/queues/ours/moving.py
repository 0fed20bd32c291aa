"""Enqueues by creating instances: each enters the state that invokes the handler."""

from __future__ import annotations

import itertools
import os
from functools import cache

from machines.engine import Engine

from . import machine

_numbers = itertools.count()


def many(count: int) -> None:
    """What ``Engine.create`` calls, in batches."""
    engine = machine.engine()
    root = engine.keys.partition(machine.NAME).root
    for at in range(0, count, machine.BATCH):
        pipeline = engine.client.pipeline(transaction=False)
        for _ in range(min(machine.BATCH, count - at)):
            pipeline.fcall("sb_create", 1, root, _id())
        if any(reply[0] != "OK" for reply in pipeline.execute()):
            raise RuntimeError(f"an instance could not be created in {root}")


def one(sent: int) -> None:
    _engine().create(machine.NAME, _id(), {"sent": sent})


def slow(seconds: float) -> None:
    _engine().create(machine.NAME, _id(), {"pause": int(seconds * 1000)})


def _id() -> str:
    """Ids of this process' own: a run enqueues more than once."""
    return f"{os.getpid()}-{next(_numbers)}"


@cache
def _engine() -> Engine:
    return machine.engine()
