"""RQ: no results kept, everything else as it comes."""

from __future__ import annotations

import os
import time

import redis
import stamps
from rq import Queue

BATCH = 500


def noop(sent: int = 0) -> None:
    stamps.note(sent)


def pause(seconds: float) -> None:
    stamps.note(stamps.SLOW)
    time.sleep(seconds)


def _queue() -> Queue:
    return Queue("bench", connection=redis.Redis.from_url(os.environ["BENCH_URL"]))


def many(count: int) -> None:
    queue = _queue()
    for at in range(0, count, BATCH):
        size = min(BATCH, count - at)
        queue.enqueue_many([Queue.prepare_data("rq_jobs.noop", result_ttl=0) for _ in range(size)])


_kept: list[Queue] = []


def one(sent: int) -> None:
    if not _kept:
        _kept.append(_queue())
    _kept[0].enqueue("rq_jobs.noop", sent, result_ttl=0)


def slow(seconds: float) -> None:
    _queue().enqueue("rq_jobs.pause", seconds, result_ttl=0)
