"""The tasks that are measured: they do nothing but count."""

from __future__ import annotations

import itertools
import json
import os
import time

from django.tasks import task

TOTAL = int(os.environ["BENCH_TASKS"])
WARM = TOTAL // 10
_counted = itertools.count(1)
_moments: list[int] = []


def _count() -> None:
    """Note when a tenth has run, and write it down with the moment of the last one."""
    number = next(_counted)
    if number == WARM:
        _moments.append(time.monotonic_ns())
    elif number == TOTAL:
        with open(os.environ["BENCH_MOMENTS"] + ".new", "w") as file:
            json.dump([*_moments, time.monotonic_ns()], file)
        os.replace(file.name, os.environ["BENCH_MOMENTS"])


@task
def plain(number: int) -> int:
    _count()
    return number


@task
async def coroutine(number: int) -> int:
    _count()
    return number
