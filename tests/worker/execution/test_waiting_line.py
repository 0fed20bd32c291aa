"""The line of jobs that wait in a worker."""

import threading
from types import SimpleNamespace

import pytest

from machines.worker.execution.in_flight import Bundle
from machines.worker.execution.pools import WaitingLine
from machines.worker.registry import Registry
from tests.engine.builders import door, publish
from tests.installation.processes import eventually
from tests.worker.builders import Running


def wait(line, groups, priority=5):
    for number, group in enumerate(groups):
        taken = SimpleNamespace(group=group, priority=priority)
        line.put([(None, SimpleNamespace(taken=taken, name=f"{group}{number}"))])


def pop_all(line, pop="pop"):
    return [getattr(line, pop)()[1].name for _ in range(len(line))]


def test_groups_take_turns_and_each_keeps_its_order():
    line = WaitingLine()
    wait(line, ["a", "a", "a", "b", "", "b"])
    assert pop_all(line) == ["a0", "b3", "4", "a1", "b5", "a2"]
    with pytest.raises(IndexError):
        line.pop()


def test_a_lower_priority_waits_for_a_higher_one_but_not_for_ever():
    line = WaitingLine()
    wait(line, "bb", priority=0)
    wait(line, "aaaca", priority=9)
    assert pop_all(line) == ["a0", "c3", "a1", "a2", "a4", "b0", "b1"]
    wait(line, "b", priority=0)
    wait(line, "a" * 40, priority=9)
    assert pop_all(line).index("b0") == 12, "the twentieth of all"


def test_jobs_that_are_handled_together_have_the_highest_priority_among_them():
    line = WaitingLine()
    wait(line, "c")
    bundle = Bundle.__new__(Bundle)
    bundle.jobs = [SimpleNamespace(taken=SimpleNamespace(group="", priority=each)) for each in (0, 9)]
    line.put([(None, bundle)])
    assert line.pop()[1] is bundle


def test_a_lower_priority_goes_back_first():
    line = WaitingLine()
    wait(line, "aaa", priority=9)
    wait(line, "bccc", priority=0)
    assert pop_all(line, "pop_last") == ["c3", "c2", "b0", "c1", "a2", "a1", "a0"]


def test_the_last_of_the_longest_goes_back_first():
    line = WaitingLine()
    wait(line, ["a", "a", "a", "b"])
    assert [line.pop_last()[1].name for _ in range(2)] == ["a2", "a1"]
    assert sorted(pop_all(line, "pop_last")) == ["a0", "b3"]
    with pytest.raises(IndexError):
        line.pop_last()


def test_a_quiet_group_is_not_behind_what_was_taken_ahead_of_a_flood(engine):
    publish(engine, door())
    let, begun, done = threading.Event(), threading.Event(), []

    def work(job):
        begun.set()
        assert let.wait(60)
        done.append(job.taken.group)

    registry = Registry()
    registry.handler("work")(work)
    flood = {"machine": "door", "src": "work", "group": "flood"}
    engine.enqueue_many([flood] * 11)
    with Running(engine, registry, concurrency=1, prefetch=30):
        assert begun.wait(60)
        engine.enqueue("door", "work", group="quiet")
        eventually(lambda: engine.queues("door")["work"]["leased"] == 12, "all are taken ahead")
        let.set()
        eventually(lambda: len(done) == 12, "all are done")
    assert done.index("quiet") <= 2
