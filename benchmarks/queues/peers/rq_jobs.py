"""RQ: no results kept, everything else as it comes."""

from __future__ import annotations

import os

import redis
from rq import Queue

BATCH = 500
queue = Queue("bench", connection=redis.Redis.from_url(os.environ["BENCH_URL"]))


def send(sent: int = 0, seconds: float = 0) -> None:
    queue.enqueue("stamps.noop", sent, seconds, result_ttl=0)


def send_many(count: int) -> None:
    for at in range(0, count, BATCH):
        size = min(BATCH, count - at)
        queue.enqueue_many([Queue.prepare_data("stamps.noop", result_ttl=0) for _ in range(size)])
