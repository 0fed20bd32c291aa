"""One instance twice: in the engine, and in the reference. Each call is made to both; both must then be the same."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import reject

from machines.engine import Engine, Instance, Job, Refused
from tests.engine.builders import NOW

from .model import Chart
from .reference import Machine, TooMuch
from .rendering import QUEUE, definition_of

TICK = 1000  # ms between two calls


class Twin:
    """``alive`` is False when the first step was refused; ``jobs``: those its states wait for, by state."""

    def __init__(self, engine: Engine, chart: Chart) -> None:
        self.engine, self.chart, self.name = engine, chart, chart.top.name
        self.reference = Machine(chart)
        self.id = secrets.token_hex(4)
        self.now = NOW
        self.jobs: dict[str, Job] = {}
        self._numbers: dict[str, int] = {}
        self.alive = False

    @contextmanager
    def living(self) -> Iterator[Twin]:
        """Published and created; gone afterwards."""
        self.engine.publish(definition_of(self.chart))
        expected = self._of_reference(lambda: self.reference.start(self.now))
        self.alive = self._of_engine(lambda: self.engine.create(self.name, self.id, now=self.now), expected)
        try:
            if self.alive:
                self.compare()
            yield self
        finally:
            if self.alive:
                self.engine.delete(self.name, self.id)

    # Calls

    def fire(self, event: str, payload: dict[str, Any]) -> None:
        self.now += TICK
        expected = self._of_reference(lambda: self.reference.fire(event, payload, self.now))
        self._of_engine(lambda: self.engine.fire(self.name, self.id, event, payload, now=self.now), expected)
        self.compare()

    def wait(self, ms: int) -> None:
        """Timers whose time comes meanwhile fire at the end of it."""
        self.now += TICK + ms
        self._of_reference(lambda: self.reference.tick(self.now))
        self.engine.tick(self.name, now=self.now)
        self.compare()

    def end_work(self, event: str) -> None:
        """The oldest job anyone waits for ends: done or error."""
        self.now += TICK
        (job,) = self.engine.take(self.name, QUEUE, "worker", lease=10, now=self.now) or [None]
        assert (job is None) == (not self.jobs)
        if job is None:
            return
        state = next(state for state, waiting in self.jobs.items() if waiting.id == job.id)
        number = self.reference.work[state]
        expected = self._of_reference(lambda: self.reference.end_work(state, event, self.now))
        if event == "done":
            self._of_engine(lambda: self.engine.complete(job, now=self.now), expected)
            if self.reference.work.get(state) == number:
                self.engine.hand_back(job, now=self.now)
        else:
            self.engine.fail(job, "no", retry=False, now=self.now)
        self.compare()

    # Comparing

    def _of_reference(self, call: Any) -> bool:
        try:
            return call()
        except TooMuch:
            reject()

    def _of_engine(self, call: Any, expected: bool) -> bool:
        try:
            made: Instance | None = call()
        except Refused:
            made = None
        assert (made is not None) == expected, "taken" if made else "refused"
        if made:
            assert made.outcome.transitions == [transition.id for transition in self.reference.taken]
        return expected

    def compare(self) -> None:
        found, expected = self.engine.get(self.name, self.id), self.reference
        assert found.data.get("trace") == expected.data["trace"]
        assert found.configuration == expected.leaves
        assert given(found.data) == given(expected.data)
        assert found.revision == expected.version
        assert found.done == (not expected.running)
        assert sorted(timer.due for timer in found.timers) == sorted(timer.due for timer in expected.timers)
        self._compare_places(found)
        self._compare_jobs(found)

    def _compare_places(self, found: Instance) -> None:
        """The time each leaf was entered, which is the order ``find`` gives."""
        keys = self.engine.keys.partition(self.name)
        scores = {leaf: self.engine.client.zscore(keys.state(leaf), self.id) for leaf in found.configuration}
        assert scores == self.reference.entered

    def _compare_jobs(self, found: Instance) -> None:
        """Every state that waits has its job, and keeps it until it is left."""
        jobs = {job.invoke: job for job in (self.engine.job(self.name, id) for id in found.jobs)}
        numbers = self.reference.work
        assert set(jobs) == set(numbers)
        kept = {state for state in numbers if self._numbers.get(state) == numbers[state]}
        assert all(jobs[state].id == self.jobs[state].id for state in kept)
        self.jobs, self._numbers = jobs, dict(numbers)


def given(data: dict[str, Any]) -> dict[str, Any]:
    """Without what is absent."""
    return {name: value for name, value in data.items() if value is not None}
