"""Enqueues jobs, as a process of its own: ``python produce.py MODULE many 1000``.

MODULE has ``send(sent=0, seconds=0)``, and where that is faster ``send_many(count)``. Runs in any virtual environment:
the standard library only.

    many COUNT             so many jobs that do nothing
    paced COUNT MEAN       one job after the other, about MEAN ms apart; each carries the ns it was sent at
    mixed COUNT SECONDS    so many jobs that do nothing, and after the first tenth of them one that sleeps
"""

from __future__ import annotations

import importlib
import random
import sys
import time
from typing import Any


def many(jobs: Any, count: float) -> None:
    if hasattr(jobs, "send_many"):
        jobs.send_many(int(count))
    else:
        for _ in range(int(count)):
            jobs.send()


def paced(jobs: Any, count: float, mean: float) -> None:
    """The pauses differ, so that no worker's own rhythm is met each time."""
    for _ in range(int(count)):
        time.sleep(mean / 1000 * random.uniform(0.5, 1.5))
        jobs.send(time.monotonic_ns())


def mixed(jobs: Any, count: float, seconds: float) -> None:
    many(jobs, count // 10)
    jobs.send(0, seconds)
    many(jobs, count - count // 10)


if __name__ == "__main__":
    sys.path.insert(0, "")
    order = {"many": many, "paced": paced, "mixed": mixed}[sys.argv[2]]
    order(importlib.import_module(sys.argv[1]), *map(float, sys.argv[3:]))
