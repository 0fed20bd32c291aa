"""Celery: no results kept, no talk between workers, everything else as it comes."""

from __future__ import annotations

import os
import time

import stamps
from celery import Celery

app = Celery("bench", broker=os.environ.get("BENCH_URL", "").replace("unix://", "redis+socket://"))
app.conf.update(task_ignore_result=True, task_default_queue="bench", worker_enable_remote_control=False)


@app.task(name="noop")
def noop(sent: int = 0) -> None:
    stamps.note(sent)


@app.task(name="pause")
def pause(seconds: float) -> None:
    stamps.note(stamps.SLOW)
    time.sleep(seconds)


def many(count: int) -> None:
    with app.producer_pool.acquire(block=True) as producer:
        for _ in range(count):
            noop.apply_async(producer=producer)


def one(sent: int) -> None:
    noop.delay(sent)


def slow(seconds: float) -> None:
    pause.delay(seconds)
