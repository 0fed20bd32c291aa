"""Sessions: the usual recipe keeps JSON under a UUID with SET EX and the tokens of a user in a set."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from itertools import count

import redis as redis_py

from benchmarks.stage import PREFIX, Stage
from machines.engine.connection.client import Client
from machines.patterns import Changed, Session, Sessions

PEER, ONE_CALL = "a life, by hand", "a life, one call each"
READ_BY_HAND, READ = "a read, by hand", "a read, one call"
PEERS = {READ: READ_BY_HAND}
LIFE = ("create", *["read"] * 7, "change", "change")
NOTE = (
    "Of ten operations one makes a session, seven read it, two change it if nobody else did. By hand: `SET EX` of JSON"
    " under a UUID and `SADD` to the user's set; `GET` and `EXPIRE`; `WATCH`, `GET`, `MULTI`, `SET`; the text of the"
    " token is the key, nothing bounds a user's set, and what expired stays in it."
)
TTL = 3600
USERS = 10_000  # in turn, so that each has a few sessions
STATE = {"user": "user-7", "roles": ["view", "fire"], "cart": [{"item": "tea", "count": 2}], "page": "/machines/"}


class ByHand:
    def __init__(self, redis: Client) -> None:
        self._redis = redis

    def create(self, user: str) -> str:
        token, pipeline = str(uuid.uuid4()), self._redis.pipeline()
        pipeline.set(f"{PREFIX}byhand:s:{token}", json.dumps(STATE | {"version": 1}), ex=TTL)
        pipeline.sadd(f"{PREFIX}byhand:of:{user}", token)
        pipeline.execute()
        return token

    def read(self, token: str) -> dict[str, object]:
        pipeline = self._redis.pipeline()
        pipeline.get(f"{PREFIX}byhand:s:{token}")
        pipeline.expire(f"{PREFIX}byhand:s:{token}", TTL)
        found: dict[str, object] = json.loads(pipeline.execute()[0])
        return found

    def change(self, token: str) -> None:
        key = f"{PREFIX}byhand:s:{token}"
        with self._redis.pipeline() as pipeline:
            while True:
                try:
                    pipeline.watch(key)
                    found = json.loads(pipeline.get(key))
                    found["version"] += 1
                    pipeline.multi()
                    pipeline.set(key, json.dumps(found), ex=TTL)
                    pipeline.execute()
                    return
                except redis_py.WatchError:
                    continue


class OneCall:
    def __init__(self, redis: Client) -> None:
        self._sessions = Sessions(redis, "bench", prefix=PREFIX, ttl=TTL, drop=True)
        self._seen: Session

    def create(self, user: str) -> str:
        self._seen = self._sessions.create(user, STATE)
        return self._seen.token

    def read(self, token: str) -> None:
        self._seen = self._sessions.get(token)

    def change(self, token: str) -> None:
        while True:
            version = self._seen.version
            try:
                self._seen = self._sessions.put(token, self._seen.state | {"version": version}, expect=version)
                return
            except Changed:
                self.read(token)


def contenders(stage: Stage) -> dict[str, Callable[[int], None]]:
    by_hand, one_call = ByHand(stage.engine.client), OneCall(stage.engine.client)
    return {
        PEER: _lives(by_hand), ONE_CALL: _lives(one_call), READ_BY_HAND: _reads(by_hand), READ: _reads(one_call),
    }  # fmt: skip


def _lives(way: ByHand | OneCall) -> Callable[[int], None]:
    held, users = [way.create("user-0")], count()

    def run(times: int) -> None:
        for number in range(times):
            what = LIFE[number % len(LIFE)]
            if what == "create":
                held[0] = way.create(f"user-{next(users) % USERS}")
            elif what == "read":
                way.read(held[0])
            else:
                way.change(held[0])

    return run


def _reads(way: ByHand | OneCall) -> Callable[[int], None]:
    token = way.create("user-1000")

    def run(times: int) -> None:
        for _ in range(times):
            way.read(token)

    return run
