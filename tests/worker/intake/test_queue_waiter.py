"""What an idle worker waits on."""

from __future__ import annotations

import threading

import pytest

from machines.engine.jobs.wakeups import Bell
from machines.worker.intake.bell_listener import BellListener
from machines.worker.intake.fetcher import QueueWaiter


@pytest.fixture
def waiter(engine):
    listener = BellListener(engine)
    listener.hears = True
    return QueueWaiter(listener, 120)


def waiting(waiter):
    thread = threading.Thread(target=waiter.wait, daemon=True)
    thread.start()
    return thread


def ended(thread):
    thread.join(60)
    return not thread.is_alive()


def test_a_wait_ends_when_a_queue_rings_and_tells_which(waiter):
    thread = waiting(waiter)
    waiter.hear(Bell("sb:{m:3}", queue="work"))
    assert ended(thread)
    heard = waiter.collect()
    assert (heard.queues, heard.gap, heard.news) == ({"sb:{m:3}": {"work"}}, False, False)
    assert not waiter.collect()


def test_a_ring_from_before_the_wait_ends_it(waiter):
    waiter.hear(Bell("sb:{m:3}", queue="work"))
    assert ended(waiting(waiter))


def test_news_and_a_gap_end_it_and_what_is_due_does_not_concern_it(waiter):
    waiter.hear(Bell("sb:{m:3}", due=1))
    assert not waiter.collect()
    for tell in (waiter.hear_news, waiter.hear_gap):
        tell()
        assert ended(waiting(waiter))
        assert waiter.collect()


def test_an_interrupt_ends_this_wait_and_all_further_ones_until_it_may_listen_again(waiter):
    thread = waiting(waiter)
    waiter.interrupt()
    assert ended(thread)
    assert ended(waiting(waiter))
    waiter.listen()
    thread = waiting(waiter)
    thread.join(0.05)
    assert thread.is_alive()
    waiter.interrupt()
    assert ended(thread)
