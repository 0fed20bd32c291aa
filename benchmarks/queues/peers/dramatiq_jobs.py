"""Dramatiq with its middleware as it comes."""

from __future__ import annotations

import os

import dramatiq
import stamps
from dramatiq.brokers.redis import RedisBroker

broker = RedisBroker(url=os.environ.get("BENCH_URL", ""))
dramatiq.set_broker(broker)
send = dramatiq.actor(stamps.noop, queue_name="bench").send
