"""Huey: no results kept, everything else as it comes."""

from __future__ import annotations

import os

import stamps
from huey import RedisHuey

huey = RedisHuey("bench", results=False, url=os.environ.get("BENCH_URL", ""))
send = huey.task()(stamps.noop)
