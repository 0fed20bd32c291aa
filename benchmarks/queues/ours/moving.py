"""Enqueues by creating instances: each enters the state that invokes the handler."""

from __future__ import annotations

import itertools
import os

from benchmarks.stage import call_many

from . import machine

_ids = (
    f"{os.getpid()}-{number}" for number in itertools.count()
)  # of this process' own: a run enqueues more than once


def send(sent: int = 0, seconds: float = 0) -> None:
    machine.engine().create(machine.NAME, next(_ids), {"sent": sent, "pause": int(seconds * 1000)})


def send_many(count: int) -> None:
    """What ``Engine.create`` calls, in batches."""
    engine = machine.engine()
    root = engine.keys.partition(machine.NAME).root
    call_many(engine.client, root, (("sb_create", id) for id in itertools.islice(_ids, count)), machine.BATCH)
