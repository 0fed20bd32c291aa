"""The peer of a shared instance: read, decide in Python, write if nobody else did (WATCH, MULTI, EXEC).

This is the usual compare-and-set recipe for the same business rules. It writes the account's hash and
nothing else: no index, no history, no counters. A conflict is tried again until it goes through.
"""

from __future__ import annotations

import redis

from .workloads import TOKEN

VALID = 28 * 86400  # seconds


def entitle(client: redis.Redis, key: str, token: str, now: int) -> int:
    """One accepted transition of the account at ``key``; answers how many tries it took. ``now`` in seconds."""
    tries = 0
    while True:
        tries += 1
        with client.pipeline() as pipeline:
            try:
                pipeline.watch(key)
                account = pipeline.hgetall(key)
                pipeline.multi()
                _decide(pipeline, key, account, token, now)
                pipeline.execute()
            except redis.WatchError:
                continue
            return tries


def _decide(pipeline: redis.client.Pipeline, key: str, account: dict[str, str], token: str, now: int) -> None:
    status = account["status"]
    if status == "Waiting" and account["token"] == token:
        pipeline.hset(key, mapping={"failed": 0, "status": "Active", "expires": now + VALID})
    elif status == "Waiting" and int(account["failed"]) < 3:
        pipeline.hincrby(key, "failed", 1)
    elif status == "Waiting":
        pipeline.hset(key, "status", "Suspended")
    elif status == "Active" and int(account["expires"]) >= now:
        pipeline.hset(key, "failed", 0)
    elif status == "Active":
        pipeline.hset(key, mapping={"failed": 0, "status": "Suspended"})
        pipeline.hdel(key, "expires")
    else:
        pipeline.hset(key, mapping={"token": token, "failed": 0, "status": "Waiting"})


def enrol(client: redis.Redis, key: str) -> None:
    client.delete(key)
    client.hset(key, mapping={"status": "Waiting", "failed": 0, "token": TOKEN})
