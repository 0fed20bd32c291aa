"""Celery: no results kept, no talk between workers, everything else as it comes."""

from __future__ import annotations

import os

import stamps
from celery import Celery

app = Celery("bench", broker=os.environ.get("BENCH_URL", "").replace("unix://", "redis+socket://"))
app.conf.update(task_ignore_result=True, task_default_queue="bench", worker_enable_remote_control=False)
noop = app.task(name="noop")(stamps.noop)
send = noop.delay


def send_many(count: int) -> None:
    with app.producer_pool.acquire(block=True) as producer:
        for _ in range(count):
            noop.apply_async(producer=producer)
