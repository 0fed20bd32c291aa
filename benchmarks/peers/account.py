"""What the Python peers share: an account in a hash, changed by WATCH, MULTI, EXEC, and the loop that counts steps.

Run by ``python PEER.py``; each line on stdin is `seconds key key ...`, each line on stdout `steps seconds tries`.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import redis

TOKEN = "MTOB1J"
DAY = 86400  # seconds
START = 1_700_000_000  # seconds
PHASES = (START, START + 29 * DAY, START + 30 * DAY)
VALID = 28 * DAY


@dataclass
class Account:
    """The data of one machine, as the libraries' guards and callbacks see it."""

    state: str = "Waiting"
    token: str = TOKEN
    failed: int = 0
    expires: int = 0


def step(client: redis.Redis, key: str, now: int, entitle: Callable[[Account, int], None]) -> int:
    """One transition by a library: read, decide, write if nobody else did. Returns how many tries it took."""
    tries = 0
    while True:
        tries += 1
        with client.pipeline() as pipeline:
            try:
                pipeline.watch(key)
                row = pipeline.hgetall(key)
                account = Account(row["state"], row["token"], int(row["failed"]), int(row["expires"]))
                entitle(account, now)
                pipeline.multi()
                pipeline.hset(key, mapping=vars(account))
                pipeline.execute()
            except redis.WatchError:
                continue
            return tries


def serve(entitle: Callable[[Account, int], None]) -> None:
    client = redis.Redis.from_url(os.environ["BENCH_URL"], decode_responses=True)
    chance = random.Random(os.getpid())
    for line in sys.stdin:
        seconds, *keys = line.split()
        turns = [(key, now) for now in PHASES for key in keys]
        for key in keys:
            client.hsetnx(key, "state", "Waiting")
            client.hset(key, mapping={"token": TOKEN, "failed": 0, "expires": 0})
        done, tries, started = 0, 0, time.perf_counter()
        while time.perf_counter() - started < float(seconds):
            key, now = turns[done % len(turns)] if len(keys) > 1 else (keys[0], chance.choice(PHASES))
            tries += step(client, key, now, entitle)
            done += 1
        print(done, time.perf_counter() - started, tries, flush=True)
