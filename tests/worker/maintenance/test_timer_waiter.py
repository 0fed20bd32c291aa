"""A wait that ends when its time has come, when something due is announced, or when it is told to."""

from __future__ import annotations

import threading

import pytest

from machines.engine.jobs.wakeups import Bell
from machines.worker.duties.due_work import TimerWaiter
from machines.worker.intake.bell_listener import BellListener, HeardBells
from tests.engine.builders import machine, publish
from tests.installation.processes import eventually

LONG = 60.0  # seconds: further away than any test waits


@pytest.fixture
def waiter():
    return TimerWaiter()


def waiting(waiter: TimerWaiter, seconds: float = LONG) -> threading.Thread:
    thread = threading.Thread(target=waiter.wait, args=(seconds,), daemon=True)
    thread.start()
    return thread


def ended(thread: threading.Thread) -> bool:
    thread.join(60)
    return not thread.is_alive()


def test_a_wait_ends_with_its_time(waiter):
    assert ended(waiting(waiter, 0.05))


def test_what_becomes_due_ends_it_and_the_earliest_time_counts(waiter):
    thread = waiting(waiter)
    for due in (700, 500, 900):
        waiter.hear(Bell("sb:{m:0}", due=due))
    waiter.hear(Bell("sb:{m:0}", queue="work"))
    assert ended(thread)
    assert ended(waiting(waiter)), "it is not collected yet"
    assert waiter.collect() == HeardBells(dues={"sb:{m:0}": 500})
    assert not waiter.collect()


def test_a_gap_ends_it(waiter):
    waiter.hear_gap()
    assert ended(waiting(waiter))
    assert waiter.collect() == HeardBells(gap=True)


def test_an_interrupt_ends_this_wait_and_all_further_ones(waiter):
    thread = waiting(waiter)
    waiter.interrupt()
    assert ended(thread)
    assert ended(waiting(waiter))


def test_machines_that_come_later_are_listened_for(engine):
    listener = BellListener(engine)
    waiter = TimerWaiter(listener)
    listener.start()
    eventually(lambda: listener.hears, "it hears the news")
    publish(engine, machine("lamp", {"On": {"after": {"500ms": "Off"}}, "Off": {}}))
    listener.watch(engine.wakeups.roots(["lamp"]))
    eventually(lambda: "lamp" in str(list(listener._roots)) and listener.hears, "it is told of the machine")
    eventually(lambda: listener.is_settled, "the server has confirmed it")
    waiter.collect()
    engine.create("lamp", "l1")
    due = engine.get("lamp", "l1").timers[0].due
    eventually(lambda: waiter.collect().dues == {engine.keys.partition("lamp").root: due}, "it rings")
    listener.stop()
