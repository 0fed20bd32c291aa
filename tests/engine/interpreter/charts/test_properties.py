"""Random charts and random calls on several instances: whatever happens, what Redis holds adds up."""

import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines.engine import BadInput, Engine, InstanceExists, LeaseLost, Refused, Suspended, UnknownInstance
from tests.conftest import remove
from tests.engine.builders import NOW
from tests.engine.dumps import dump, silence

from .audits import Audit
from .profile import RUN, TIMES
from .rendering import QUEUE, definition_of
from .strategies import EVENTS, IDS, PAYLOADS, Kind, charts

pytestmark = [pytest.mark.redis, pytest.mark.timeout(120 * TIMES)]

KINDS = {
    "timers and work": Kind(timers=True, work=True),
    "messages": Kind(timers=True, mail=True),
    "failures": Kind(timers=True, work=True, mail=True, failures=True),
    "failures that are raised": Kind(timers=True, work=True, failures=True, raises=True),
}
NO = (Refused, Suspended, UnknownInstance, InstanceExists, BadInput, LeaseLost)  # what leaves everything as it was
WAITS = st.sampled_from([0, 1000, 4000, 70_000])


def call(name, *arguments):
    return st.tuples(st.just(name), *arguments)


def calls(kind):
    """What is done: (method of Yard, arguments)."""
    ids = st.sampled_from(IDS)
    found = [
        call("fire", ids, st.sampled_from(EVENTS), PAYLOADS),
        call("fire", ids, st.sampled_from(EVENTS), PAYLOADS),
        call("fire", ids, st.sampled_from(EVENTS), PAYLOADS),
        call("create", ids),
        call("force", ids, st.integers(0, 20)),
        call("suspend", ids),
        call("resume", ids, st.sampled_from(["fire", "shift"])),
        call("delete", ids),
    ]
    found += [call("tick", WAITS), call("tick", WAITS)] if kind.timers else []
    found += [call("end_work", st.sampled_from(["complete", "fail", "hand_back"]))] * 2 if kind.work else []
    return st.lists(st.one_of(found), min_size=8, max_size=20)


class Yard:
    """Instances of one machine under a prefix of their own. Every call looks at what it did, and then at everything."""

    def __init__(self, url, chart, partitions=1):
        self.engine = Engine.from_url(url, prefix=f"t{secrets.token_hex(4)}:", partitions=partitions)
        self.chart, self.name, self.now = chart, chart.top.name, NOW
        self.engine.publish(definition_of(chart))
        self.audit = Audit(self.engine, chart)

    def close(self):
        remove(self.engine.client, self.engine.keys.prefix)
        self.engine.client.close()

    def version_of(self, id):
        try:
            return self.engine.get(self.name, id).revision
        except UnknownInstance:
            return 0

    def attempt(self, made, id):
        """One step, or nothing at all. Messages may come back at once, each a step of its own."""
        self.now += 7
        silence(self.engine)
        before, version = dump(self.engine), self.version_of(id)
        try:
            instance = made()
        except NO:
            silence(self.engine)
            assert dump(self.engine) == before
            return None
        assert instance is None or instance.revision == version + 1
        return instance

    def create(self, id):
        self.attempt(lambda: self.engine.create(self.name, id, now=self.now), id)

    def fire(self, id, event, payload):
        seen = self.explain(id, event, payload)
        fired = self.attempt(lambda: self.engine.fire(self.name, id, event, payload, now=self.now), id)
        if fired:
            outcome = {"configuration": fired.configuration, "data": fired.data}
            assert seen.outcome == outcome | {"transitions": fired.outcome.transitions}
        else:
            assert seen is None or not seen.taken

    def explain(self, id, event, payload):
        """At the moment attempt() will set."""
        try:
            return self.engine.explain(self.name, id, event, payload, now=self.now + 7)
        except (UnknownInstance, Suspended):
            return None

    def force(self, id, number):
        active = (state for state in self.chart.states.values() if not state.is_history)
        states = [state.name for state in active if state is not self.chart.top]
        state = states[number % len(states)]
        forced = self.attempt(lambda: self.engine.force(self.name, id, state, actor="a", reason="r", now=self.now), id)
        assert forced is None or state in forced.configuration or self.chart.states[state].children

    def suspend(self, id):
        was = self.version_of(id) and self.engine.get(self.name, id).suspended
        if not was:
            self.attempt(lambda: self.engine.suspend(self.name, id, actor="a", reason="r", now=self.now), id)

    def resume(self, id, overdue):
        """What waited is applied after the step of the resuming itself."""
        version = self.version_of(id)
        if version and self.engine.get(self.name, id).suspended is not None:
            self.now += 7
            resumed = self.engine.resume(self.name, id, actor="a", reason="r", overdue=overdue, now=self.now)
            assert resumed.revision > version
            assert resumed.suspended is None

    def delete(self, id):
        if self.version_of(id):
            self.audit.gone += self.audit.taken_by(id)
            self.engine.delete(self.name, id)

    def tick(self, ms):
        self.now += ms
        self.engine.tick(self.name, now=self.now)

    def end_work(self, how):
        for job in self.engine.take(self.name, QUEUE, "worker", lease=10_000_000, now=self.now):
            if how == "complete":
                if self.attempt(lambda job=job: self.engine.complete(job, now=self.now), job.instance) is None:
                    self.keep(job)
            elif how == "fail":
                self.engine.fail(job, "no", retry=False, now=self.now)
            else:
                self.engine.hand_back(job, now=self.now)

    def keep(self, job):
        """A job whose step was refused is still held: it goes back."""
        if job.id in {waiting.id for waiting in self.engine.jobs(self.name, QUEUE, place="leased")}:
            self.engine.hand_back(job, now=self.now)


@pytest.mark.hostile
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_whatever_happens_it_adds_up(redis_url, kind):
    @RUN
    @given(chart=charts(kind), made=calls(kind))
    def check(chart, made):
        yard = Yard(redis_url, chart)
        try:
            for id in IDS[:2]:
                yard.create(id)
            for name, *arguments in made:
                getattr(yard, name)(*arguments)
                yard.audit.check()
        finally:
            yard.close()

    check()
