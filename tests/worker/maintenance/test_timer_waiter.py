"""The alarm: a wait that ends when its time has come, when a bell rings, or when it is told to."""

from __future__ import annotations

import threading
import time

import pytest

from machines.engine import Engine, errors
from machines.worker.maintenance.timer_waiter import TimerWaiter
from tests.installation.processes import eventually
from tests.worker import builders

LONG = 60.0  # seconds: further away than any test waits


@pytest.fixture
def bells(engine):
    """Two machines, and an alarm that listens for both."""
    names = [engine.publish(builders.errand(name)).name for name in ("one", "two")]
    timer_waiter = TimerWaiter(engine, lambda: names)
    timer_waiter.wait(0)  # gets to know them
    yield engine, timer_waiter, names
    timer_waiter.close()


def waiting(timer_waiter: TimerWaiter, seconds: float = LONG) -> threading.Thread:
    thread = threading.Thread(target=timer_waiter.wait, args=(seconds,))
    thread.start()
    return thread


def ended(thread: threading.Thread) -> bool:
    thread.join(60)
    return not thread.is_alive()


def listened(engine: Engine) -> bool:
    """Is a blocking pop under way on the bell of the first machine?"""
    return any("cmd=blpop" in line for line in _clients(engine))


def _clients(engine: Engine) -> list[str]:
    return [" ".join(f"{name}={value}" for name, value in row.items()) for row in engine.client.client_list()]


def test_a_wait_ends_with_its_time(bells, monkeypatch):
    """By a clock that moves on by 50 ms each time it is looked at."""
    _, timer_waiter, _ = bells
    looks = []
    monkeypatch.setattr(timer_waiter, "_clock", lambda: looks.append(len(looks) * 0.05) or looks[-1])
    timer_waiter.wait(0.12)
    assert looks[-1] >= 0.12


@pytest.mark.parametrize("number", [0, 1])
def test_a_bell_of_any_machine_ends_it(bells, number):
    engine, timer_waiter, names = bells
    thread = waiting(timer_waiter)
    eventually(lambda: listened(engine), "it listens")
    engine.client.lpush(engine.keys.partition(names[number]).clock, "1")
    assert ended(thread)


def test_a_ring_from_before_the_wait_ends_it(bells):
    engine, timer_waiter, names = bells
    engine.client.lpush(engine.keys.partition(names[0]).clock, "1")
    assert ended(waiting(timer_waiter))


def test_a_ring_between_two_waits_ends_the_second(bells):
    engine, timer_waiter, names = bells
    timer_waiter.wait(0.01)
    engine.client.lpush(engine.keys.partition(names[0]).clock, "1")
    assert ended(waiting(timer_waiter))


def test_one_pop_lasts_for_many_waits(bells):
    engine, timer_waiter, names = bells
    before = engine.client.info("commandstats").get("cmdstat_blpop", {"calls": 0})["calls"]
    for _ in range(10):
        timer_waiter.wait(0.01)
    engine.client.lpush(engine.keys.partition(names[0]).clock, "1")
    assert ended(waiting(timer_waiter))
    assert engine.client.info("commandstats")["cmdstat_blpop"]["calls"] - before == 1


def test_an_interrupt_ends_this_wait_and_all_further_ones(bells):
    engine, timer_waiter, _ = bells
    thread = waiting(timer_waiter)
    eventually(lambda: listened(engine), "it listens")
    timer_waiter.interrupt()
    assert ended(thread)
    assert ended(waiting(timer_waiter))


def test_machines_that_come_and_go_end_it_and_are_listened_for(bells):
    engine, timer_waiter, names = bells
    thread = waiting(timer_waiter)
    names.append(engine.publish(builders.errand("three")).name)
    assert ended(thread)
    thread = waiting(timer_waiter)
    eventually(lambda: listened(engine), "it listens")
    engine.client.lpush(engine.keys.partition("three").clock, "1")
    assert ended(thread)


def test_without_any_machine_it_waits_for_the_first(engine):
    names: list[str] = []
    timer_waiter = TimerWaiter(engine, lambda: names)
    timer_waiter.wait(0.01)
    thread = waiting(timer_waiter)
    names.append("one")
    assert ended(thread)
    timer_waiter.close()


def test_a_server_that_goes_away_is_told_and_the_next_wait_listens_again(own_server):
    engine = Engine.from_url(own_server.url)
    name = engine.publish(builders.errand()).name
    timer_waiter = TimerWaiter(engine, lambda: [name])
    timer_waiter.wait(0)
    timer_waiter.wait(0.01)
    own_server.stop()
    with pytest.raises(errors.EngineUnavailable):
        timer_waiter.wait(LONG)
    with pytest.raises(errors.EngineUnavailable):
        timer_waiter.wait(LONG)
    own_server.start()
    thread = waiting(timer_waiter)
    eventually(lambda: listened(engine), "it listens")
    engine.client.lpush(engine.keys.partition(name).clock, "1")
    assert ended(thread)
    timer_waiter.close()
    engine.client.close()


def test_a_connection_that_says_nothing_any_more_is_given_up(bells, monkeypatch):
    """Half open: the pop should have come back seconds ago."""
    engine, timer_waiter, _ = bells
    timer_waiter.wait(0.01)
    monkeypatch.setattr(timer_waiter, "_clock", lambda: time.monotonic() + timer_waiter.BLOCK + timer_waiter.MARGIN + 1)
    with pytest.raises(errors.EngineUnavailable):
        timer_waiter.wait(LONG)
    monkeypatch.undo()
    thread = waiting(timer_waiter)
    eventually(lambda: listened(engine), "it listens")
    timer_waiter.interrupt()
    assert ended(thread)


def test_without_a_connection_of_its_own_it_waits_a_moment(engine, monkeypatch):
    """As on a cluster."""
    timer_waiter = TimerWaiter(engine, lambda: ["one"])
    monkeypatch.setattr(timer_waiter, "_connection", None)
    assert ended(waiting(timer_waiter))
