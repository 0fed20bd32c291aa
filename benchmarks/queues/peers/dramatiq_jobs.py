"""Dramatiq with its middleware as it comes."""

from __future__ import annotations

import os
import time

import dramatiq
import stamps
from dramatiq.brokers.redis import RedisBroker

broker = RedisBroker(url=os.environ.get("BENCH_URL", ""))
dramatiq.set_broker(broker)


@dramatiq.actor(queue_name="bench")
def noop(sent: int = 0) -> None:
    stamps.note(sent)


@dramatiq.actor(queue_name="bench")
def pause(seconds: float) -> None:
    stamps.note(stamps.SLOW)
    time.sleep(seconds)


def many(count: int) -> None:
    for _ in range(count):
        noop.send()


def one(sent: int) -> None:
    noop.send(sent)


def slow(seconds: float) -> None:
    pause.send(seconds)
