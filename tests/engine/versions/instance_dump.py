"""All that Redis holds of one instance, for comparisons before and after a move."""

from __future__ import annotations

from typing import Any

from machines.engine import Engine
from tests.engine.jobs.stored_jobs import read_job

REVISION = "_version"


def dump(engine: Engine, machine: str, id: str, *jobs: str) -> dict[str, Any]:
    """Read everything but the revision, the history and the undo record. ``jobs``: further jobs to read."""
    keys, redis = engine.keys.partition(machine), engine.client
    found = redis.hgetall(keys.instance(id))
    found.pop(REVISION, None)
    named = sorted({*found.get("_jobs", "").split(), *jobs})
    root = keys.root.replace("{", "[{]")
    return {
        "hash": found,
        "entered": {state: redis.zscore(keys.state(state), id) for state in redis.smembers(keys.states)},
        "timers": [pair for pair in redis.zrange(keys.timers, 0, -1, withscores=True) if pair[0].endswith(f":{id}")],
        "late": [pair for pair in redis.zrange(keys.late, 0, -1, withscores=True) if pair[0].endswith(f":{id}")],
        "jobs": {job: (read_job(redis, keys.job(job)), place(engine, machine, job)) for job in named},
        "lookups": {
            key: [member for member in redis.zrange(key, 0, -1) if member.endswith(f"\0{id}")]
            for key in sorted(redis.scan_iter(match=f"{root}:by:*"))
        },
        "held": redis.lrange(keys.held(id), 0, -1),
        "wrong": redis.hget(keys.wrong, id),
    }


def dump_all(engine: Engine, machine: str, id: str) -> dict[str, Any]:
    """Read the same with revision and history, and the outbox: a refused move leaves all of it alone."""
    keys, redis = engine.keys.partition(machine), engine.client
    return dump(engine, machine, id) | {
        "whole": redis.hgetall(keys.instance(id)),
        "history": redis.lrange(keys.history(id), 0, -1),
        "outbox": redis.xrange(keys.outbox),
        "undo": redis.get(keys.undo(id)),
        "flow": redis.hgetall(keys.flow),
    }


def place(engine: Engine, machine: str, job: str) -> dict[str, float]:
    """Return the places of the queue that hold a job, with its score there."""
    keys, redis = engine.keys.partition(machine), engine.client
    queue = read_job(redis, keys.job(job)).get("queue", "")
    scores = {
        name: redis.zscore(getattr(keys, name)(queue), job)
        for name in ("ready", "leased", "delayed", "dead", "handled")
    }
    return {name: score for name, score in scores.items() if score is not None}


def audit(engine: Engine, machine: str) -> None:
    """Check that indexes, timers, jobs and figures of versions are where the hashes say."""
    keys, redis = engine.keys.partition(machine), engine.client
    pattern = keys.root.replace("{", "[{]")
    rows = {key.partition(":i:")[2]: redis.hgetall(key) for key in redis.scan_iter(match=f"{pattern}:i:*")}
    for state in redis.smembers(keys.states):
        held = {id for id, row in rows.items() if state in row["_state"].split("\n")}
        assert set(redis.zrange(keys.state(state), 0, -1)) == held, state
    timers = 0
    for id in rows:
        instance = engine.get(machine, id)
        scores = [redis.zscore(keys.state(leaf), id) for leaf in instance.configuration]
        assert max(scores) == instance.entered, id
        timers += len(instance.timers) if instance.suspended is None else 0
        for job in instance.jobs:
            row = read_job(redis, keys.job(job))
            assert row["instance"] == id
            assert list(place(engine, machine, job)) == [row["place"]]
    assert redis.zcard(keys.timers) + redis.zcard(keys.late) == timers
    counted: dict[str, int] = {}
    for row in rows.values():
        version = row["_def"].partition(":")[0]
        counted[version] = counted.get(version, 0) + 1
    figures = redis.hgetall(keys.versions)
    found = {n.partition(":")[0]: int(c) for n, c in figures.items() if n.endswith(":instances") and c != "0"}
    assert found == counted
