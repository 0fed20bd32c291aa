"""Random calls on a batch: its counts and callbacks are what a model in plain Python says."""

import secrets
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from machines.engine import BadInput, Engine
from tests.conftest import remove
from tests.engine.builders import NOW, door, publish

WHO = {"actor": "a", "reason": "r"}
OPEN = ("ready", "leased", "delayed")
NAMES = ("on_success", "on_failure", "on_end")


class Batch(RuleBasedStateMachine):
    url = ""

    def __init__(self):
        super().__init__()
        self.engine = Engine.from_url(self.url, prefix=f"t{secrets.token_hex(4)}:")
        publish(self.engine, door())
        self.now, self.places, self.numbered = NOW, {}, 0  # job -> place; "done" when it is gone
        self.held, self.called, self.ended = [], Counter(), False
        callbacks = {name: {"machine": "door", "src": name, "queue": "after"} for name in NAMES}
        self.engine.batch(self.items(2), id="b", now=self.now, **callbacks)

    def teardown(self):
        remove(self.engine.client, self.engine.keys.prefix)
        self.engine.client.close()

    def items(self, count):
        for _ in range(count):
            self.numbered += 1
            self.places[f"0-{self.numbered}"] = "ready"
        return [{"machine": "door", "src": "work", "attempts": 2, "backoff": 0, "jitter": False}] * count

    def settle(self):
        """Enqueue in the model what the end of the last open job enqueues."""
        if any(place in OPEN for place in self.places.values()):
            return
        self.ended = True
        for name in ("on_failure" if "failed" in self.places.values() else "on_success", "on_end"):
            if not self.called[name]:
                self.called[name] += 1
                self.numbered += 1

    @rule(count=st.integers(1, 3))
    def add(self, count):
        if self.ended:
            with pytest.raises(BadInput, match="has ended"):
                self.engine.add_to_batch("door", "b", [{"machine": "door", "src": "work"}], now=self.now)
        else:
            self.engine.add_to_batch("door", "b", self.items(count), now=self.now)

    @rule(count=st.integers(1, 3))
    def take(self, count):
        for job in self.engine.take("door", "work", "w", count=count, now=self.now):
            self.places[job.id] = "leased"
            self.held.append(job)

    @precondition(lambda self: self.held)
    @rule(count=st.integers(1, 3))
    def complete(self, count):
        jobs, self.held = self.held[:count], self.held[count:]
        assert self.engine.complete_many([(job, None) for job in [*jobs, jobs[0]]], now=self.now)[:-1] == [None] * len(
            jobs
        )
        self.places |= {job.id: "done" for job in jobs}
        self.settle()

    @precondition(lambda self: self.held)
    @rule(retry=st.booleans())
    def fail(self, retry):
        job = self.held.pop()
        place = self.engine.fail(job, "no", retry=retry, now=self.now)
        self.places[job.id] = "failed" if place == "dead" else place
        self.settle()

    @precondition(lambda self: self.held)
    @rule()
    def withdraw(self):
        job = self.held.pop()
        self.engine.withdraw("door", job, now=self.now, **WHO)
        self.places[job.id] = "failed"
        self.settle()

    @rule()
    def lose_leases(self):
        self.now += 60_000
        self.engine.sweep("door", now=self.now)
        for job in self.held:
            self.places[job.id] = "failed" if job.attempt == 2 else "ready"
        self.held = []
        self.settle()

    @rule()
    def retry_dead(self):
        for job in self.engine.jobs("door", "work", place="dead"):
            self.places[job.id] = "ready"
        self.engine.redrive("door", "work", now=self.now, **WHO)

    @rule()
    def purge(self):
        there = self.engine.jobs("door", "work", place="ready")
        self.engine.purge("door", "work", place="ready", now=self.now, **WHO)
        self.places |= {job.id: "failed" for job in there}
        if there:
            self.settle()

    @invariant()
    def counts_agree(self):
        found, places = self.engine.get_batch("door", "b"), Counter(self.places.values())
        assert (found.total, found.done, found.failed) == (len(self.places), places["done"], places["failed"])
        assert found.open == sum(places[place] for place in OPEN)
        assert bool(found.ended) == self.ended

    @invariant()
    def callbacks_agree(self):
        assert Counter(job.src for job in self.engine.jobs("door", "after")) == +self.called


def test_a_batch_counts_as_the_model_does(redis_url):
    Batch.url = redis_url
    run_state_machine_as_test(Batch, settings=settings(max_examples=40, stateful_step_count=30, deadline=None))
