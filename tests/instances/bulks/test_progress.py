"""The measured rate of a bulk and its time left, which are unknown rather than guessed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from machines.engine import Step
from machines.instances.bulks import BULK, handlers
from machines.instances.bulks.actions import STEPS, measure_progress

from .builders import parcels, previewed, step


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(handlers, "TURN", 25)


@pytest.fixture
def running(engine):
    """A bulk of 60 parcels that runs, one batch of 25 done."""
    parcels(engine, 60)
    bulk = previewed(engine)
    bulk.run("ann")
    step(engine, "act")
    return bulk


def at_second(steps: list[Step], begun: int = 0) -> list[Step]:
    """The same steps, a second apart, the oldest at ``begun``."""
    return [replace(each, at=begun + 1000 * place) for place, each in enumerate(reversed(steps))][::-1]


def test_the_rate_is_that_of_the_batches_since_the_start(engine, running):
    steps = at_second(engine.history(BULK, running.id, limit=2))
    found = measure_progress(running.get(), steps, now=1000)
    assert (found.done, found.total, found.previews) == (25, 60, False)
    assert (found.rate, found.left, found.stalled, found.pace) == (25.0, 1400, None, "25/s")


def test_without_a_batch_nothing_is_known(engine):
    parcels(engine, 60)
    bulk = previewed(engine)
    bulk.run("ann")
    found = measure_progress(bulk.get(), engine.history(BULK, bulk.id, limit=STEPS), now=10)
    assert (found.done, found.rate, found.left, found.pace) == (0, None, None, "")


def test_a_pause_is_not_part_of_the_rate(engine, running):
    running.pause("ann")
    paused = measure_progress(running.get(), engine.history(BULK, running.id, limit=STEPS))
    assert (paused.rate, paused.left) == (None, None)
    running.resume("ann")
    step(engine, "act")
    steps = at_second(engine.history(BULK, running.id, limit=STEPS))
    assert measure_progress(running.get(), steps, now=steps[0].at).rate == 25.0


def test_a_bulk_without_a_batch_for_long_says_so_and_no_time_left(engine, running):
    steps = at_second(engine.history(BULK, running.id, limit=2))
    found = measure_progress(running.get(), steps, now=61_000)
    assert (found.stalled, found.left) == (60_000, None)


def test_the_end_has_neither(engine, running):
    while step(engine, "act"):
        pass
    found = measure_progress(running.get(), engine.history(BULK, running.id, limit=STEPS))
    assert (running.get().state, found.done, found.rate, found.left) == ("done", 60, None, None)
