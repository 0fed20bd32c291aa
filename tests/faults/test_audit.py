"""The audit finds each kind of damage: what it does not complain of is in order."""

import json

import pytest

from .audit import audit, look
from .builders import begin, line


@pytest.fixture
def keys(engine):
    """A machine with a job in each place, and instances that are done."""
    engine.publish(line("quick", "quick", attempts=1, unique=True))
    begin(engine, "abcdef")
    for job in engine.take("line", "jobs", "w", count=4):
        if job.instance == "a":
            engine.complete(job)
        elif job.instance == "b":
            engine.fail(job, "no")
        elif job.instance == "c":
            engine.hand_back(job, delay=60_000)
    found = audit(engine, "line")
    assert found.places == {"ready": 3, "leased": 1, "delayed": 1, "handled": 1}
    assert found.states == {"step0": 4, "step1": 1, "failed": 1}
    return engine.keys.partition("line")


def entry(client, keys, job):
    """The step of ``a`` once more, as if the end of a job had moved it."""
    step = json.loads(client.fcall("sb_history", 1, keys.root, "a", -1, -1)[3])
    step[0], step[2], step[5] = step[0] + 1, "done.invoke.x", f"job {job}"
    client.rpush(keys.history("a"), json.dumps(step))
    client.hincrby(keys.instance("a"), "_version", 1)


DAMAGE = {
    "is listed in [('jobs', 'ready'), ('jobs', 'leased')]": lambda c, k: c.zadd(k.leased("jobs"), {"0-5": 1}),
    "and is listed in []": lambda c, k: c.zrem(k.ready("jobs"), "0-5"),
    "0-5 is listed in [('jobs', 'ready')] and does not exist": lambda c, k: c.delete(k.job("0-5")),
    "0-99 is listed in": lambda c, k: c.zadd(k.dead("jobs"), {"0-99": 1}),
    "0-5 says jobs leased": lambda c, k: c.hset(k.job("0-5"), "place", "leased"),
    "is leased with the token ''": lambda c, k: c.hset(k.job("0-4"), "token", ""),
    "is at attempt 2 of 1": lambda c, k: c.hset(k.job("0-4"), "attempt", 2),
    "a waits for 0-1, which is None": lambda c, k: c.hset(k.instance("a"), "_jobs", "0-1"),
    "and e does not wait for it": lambda c, k: c.hset(k.instance("e"), "_jobs", ""),
    "listed in set()": lambda c, k: c.zrem(k.state("step1"), "a"),
    "g is listed in {'failed'} and does not exist": lambda c, k: c.zadd(k.state("failed"), {"g": 1}),
    "a was moved 2 times by the end of 0-1": lambda c, k: entry(c, k, "0-1"),
    "a was moved by 0-5, which is still there": lambda c, k: entry(c, k, "0-5"),
    "the history of a goes": lambda c, k: c.lset(k.history("a"), 1, c.lindex(k.history("a"), 0)),
    "the unique key jobs:x stands for": lambda c, k: c.set(k.unique("jobs", "x"), "0-2"),
    "does not hold its unique key": lambda c, k: c.delete(k.unique("jobs", "e")),
    "the total says 7": lambda c, k: c.hincrby(k.meta, "instances", 1),
    "the statistics account for": lambda c, k: c.hincrby(k.stats("jobs"), "withdrawn", 1),
    "attempts were handed out": lambda c, k: c.hincrby(k.stats("jobs"), "lost", 9),
    "the queue other has keys": lambda c, k: c.zadd(k.ready("other"), {"0-77": 1}),
}


@pytest.mark.parametrize("complaint", DAMAGE)
def test_it_finds(engine, keys, complaint):
    DAMAGE[complaint](engine.client, keys)
    assert any(complaint in wrong for wrong in look(engine, "line").wrong)
    with pytest.raises(AssertionError, match="things are wrong with line"):
        audit(engine, "line")
