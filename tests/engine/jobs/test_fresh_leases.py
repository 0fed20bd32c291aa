"""The server remembers the jobs that it leased: their completion reads little of them again, and ends alike."""

import pytest

from machines.engine import LeaseLost
from machines.engine.connection import library
from tests.engine.builders import NOW, errand, publish

LATER = NOW + 60_000


def start(engine, *ids):
    publish(engine, errand(), *ids)
    for id in ids:
        engine.fire("errand", id, "start", now=NOW)


def take(engine, worker="w", now=NOW):
    return engine.take("errand", "work", worker, count=10, now=now)


def complete(engine, jobs, now=LATER):
    return engine.complete_many([(job, {"x": 1}) for job in jobs], now=now)


def forget(engine):
    """A new library has no memory of the old one."""
    engine.client.function_load(library.text(), replace=True)


def read_entry(engine, job):
    """The packed history entry of the end of a job."""
    return engine.client.lindex(f"{job.root}:h:{job.instance}", -1).replace(job.id, "JOB")


def test_a_completion_is_the_same_with_and_without_the_memory(engine):
    start(engine, "a", "b", "c", "d")
    jobs = take(engine)
    complete(engine, jobs[:2])
    forget(engine)
    complete(engine, jobs[2:])
    (entry,) = {read_entry(engine, job) for job in jobs}
    assert entry.endswith('\t@"job JOB"\t{"result":{"x":1}}\t0=[0,0,60000,1,"w"]')
    assert {engine.get("errand", id).state for id in "abcd"} == {"Done"}
    assert engine.jobs("errand", "work", place="leased") == []


def test_a_token_of_before_is_refused_and_the_later_one_counts(engine):
    start(engine, "a", "b")
    first = take(engine)
    engine.sweep("errand", now=LATER)
    second = take(engine, "other", now=LATER + 60_000)
    assert [one.why for one in complete(engine, first, LATER + 60_001) if isinstance(one, LeaseLost)] == [
        "taken back"
    ] * 2
    complete(engine, second, LATER + 60_002)
    assert read_entry(engine, second[0]).endswith('0=[0,120000,2,2,"other"]')


@pytest.mark.parametrize("command", [("DEL",), ("HSET", "token", ""), ("HDEL", "token")])
def test_what_became_of_the_job_meanwhile_counts(engine, command):
    start(engine, "a", "b")
    jobs = take(engine)
    name, *words = command
    for job in jobs:
        engine.client.execute_command(name, f"{job.root}:job:{job.id}", *words)
    assert all(isinstance(one, LeaseLost) for one in complete(engine, jobs))
    assert {engine.get("errand", id).state for id in "ab"} == {"Busy"}


def test_a_new_id_of_the_invoke_is_heard_of(engine):
    start(engine, "a", "b")
    jobs = take(engine)
    for job in jobs:
        engine.client.hset(f"{job.root}:job:{job.id}", "invoke", "unknown")
    complete(engine, jobs)
    assert {engine.get("errand", id).state for id in "ab"} == {"Busy"}


def test_jobs_beyond_those_remembered_are_completed_too(engine):
    text = library.text()
    assert "local MOST = 5000 -- jobs" in text
    engine.load_library()
    engine.client.function_load(text.replace("local MOST = 5000 -- jobs", "local MOST = 3 -- jobs"), replace=True)
    try:
        ids = [f"i{number}" for number in range(10)]
        start(engine, *ids)
        jobs = take(engine)
        complete(engine, jobs[5:])
        complete(engine, jobs[:5])
        assert {engine.get("errand", id).state for id in ids} == {"Done"}
    finally:
        forget(engine)
