"""Enqueues jobs, as a process of its own: ``python produce.py MODULE many 1000``.

MODULE has ``many(count)``, ``one(sent)`` and ``slow(seconds)``. Runs in any virtual environment: the standard
library only.

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


def many(jobs: Any, count: str) -> None:
    jobs.many(int(count))


def paced(jobs: Any, count: str, mean: str) -> None:
    """The pauses differ, so that no worker's own rhythm is met each time."""
    pause = float(mean) / 1000
    for _ in range(int(count)):
        time.sleep(pause * random.uniform(0.5, 1.5))
        jobs.one(time.monotonic_ns())


def mixed(jobs: Any, count: str, seconds: str) -> None:
    first = int(count) // 10
    jobs.many(first)
    jobs.slow(float(seconds))
    jobs.many(int(count) - first)


if __name__ == "__main__":
    sys.path.insert(0, "")
    {"many": many, "paced": paced, "mixed": mixed}[sys.argv[2]](importlib.import_module(sys.argv[1]), *sys.argv[3:])
