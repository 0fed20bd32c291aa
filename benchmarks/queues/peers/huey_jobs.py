"""Huey: no results kept, everything else as it comes."""

from __future__ import annotations

import os
import time

import stamps
from huey import RedisHuey

huey = RedisHuey("bench", results=False, url=os.environ.get("BENCH_URL", ""))


@huey.task()
def noop(sent: int = 0) -> None:
    stamps.note(sent)


@huey.task()
def pause(seconds: float) -> None:
    stamps.note(stamps.SLOW)
    time.sleep(seconds)


def many(count: int) -> None:
    for _ in range(count):
        noop()


def one(sent: int) -> None:
    noop(sent)


def slow(seconds: float) -> None:
    pause(seconds)
