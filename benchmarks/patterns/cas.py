"""One more on a counter in a JSON value: the usual recipe reads, decides and writes under WATCH, and tries again."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable

import redis

from benchmarks.crowd import PROCESSES, Crowd
from benchmarks.stage import PREFIX, Stage
from machines.patterns import Records, cas

PEER = "WATCH, GET, MULTI, SET by hand"
UPDATE, RECORD, FIRE = "update of a string", "update of a record", "fire, one call"
ALL = f"{PROCESSES} processes on one: "
PEERS = {f"{ALL}{title}": f"{ALL}{PEER}" for title in (UPDATE, RECORD, FIRE)}
NOTE = (
    "By hand: WATCH, GET, then MULTI, SET and EXEC in one pipeline, again and at once after each conflict. "
    "Fire: a machine whose event adds one, with its history, flow and index written beside it. "
    "With all processes on one, an operation is one that went through."
)
RETRIES = 10_000
KEY = f"{PREFIX}counter"
DEFINITION = {
    "id": "counter",
    "initial": "Counting",
    "context": {"type": "object", "properties": {"count": {"type": "integer", "default": 0}}},
    "states": {"Counting": {"on": {"add": {"target": "Counting", "actions": {"set": {"count": "count + 1"}}}}}},
}


def contenders(stage: Stage) -> dict[str, Callable[[int], None]]:
    stage.engine.publish(DEFINITION)
    made = {PEER: by_hand, UPDATE: update, RECORD: record, FIRE: fire}
    alone = {title: make(stage) for title, make in made.items()}
    return alone | Crowd(stage, {f"{ALL}{title}": make for title, make in made.items()}).runs()


def by_hand(stage: Stage) -> Callable[[int], None]:
    client = stage.engine.client

    def one() -> None:
        while True:
            with client.pipeline() as pipeline:
                try:
                    pipeline.watch(KEY)
                    held = json.loads(pipeline.get(KEY) or '{"count":0}')
                    pipeline.multi()
                    pipeline.set(KEY, json.dumps(_more(held)))
                    pipeline.execute()
                    return
                except redis.WatchError:
                    continue

    return _times(one)


def update(stage: Stage) -> Callable[[int], None]:
    client, key = stage.engine.client, f"{KEY}:string"

    def more(text: str | None) -> str:
        return json.dumps(_more(json.loads(text or '{"count":0}')))

    return _times(lambda: cas.update(client, key, more, RETRIES))


def record(stage: Stage) -> Callable[[int], None]:
    records = Records(stage.engine.client, "counters", prefix=PREFIX)
    return _times(lambda: records.update("one", lambda held: _more(held or {"count": 0}), RETRIES))


def fire(stage: Stage) -> Callable[[int], None]:
    stage.engine.create("counter", "one", key="one")
    return _times(lambda: stage.engine.fire("counter", "one", "add"))


def _more(held: dict[str, int]) -> dict[str, int]:
    return {"count": held["count"] + 1}


def _times(one: Callable[[], object]) -> Callable[[int], None]:
    def run(times: int) -> None:
        for _ in itertools.repeat(None, times):
            one()

    return run
