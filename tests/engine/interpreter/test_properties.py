"""Random machines and random calls: whatever happens, what Redis holds adds up."""

import secrets
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from machines.engine import Conflict, Engine, Refused, SignalboxError
from tests.conftest import remove
from tests.engine.builders import NOW
from tests.engine.dumps import dump, silence
from tests.engine.jobs.stored_jobs import read_job

from .strategies import EVENTS, publishable

PLACES = ("ready", "leased", "delayed", "dead", "handled")
QUEUES = ("work", "mail")
IDS = st.sampled_from(["p", "q", "r"])
PAYLOADS = st.one_of(
    st.just({}), st.builds(lambda x: {"x": x}, st.one_of(st.integers(-1, 4), st.text("ab", max_size=2)))
)


class Life(RuleBasedStateMachine):
    """Calls of all kinds on three instances of one random machine."""

    url = ""

    def __init__(self):
        super().__init__()
        self.engine = Engine.from_url(self.url, prefix=f"t{secrets.token_hex(4)}:")
        self.keys = self.engine.keys.partition("m")
        self.now = NOW
        self.versions = {}  # of each instance that lives
        self.gone = Counter()  # transitions of instances that were deleted
        self.held = []  # jobs we have a token for

    def teardown(self):
        remove(self.engine.client, self.engine.keys.prefix)
        self.engine.client.close()

    @initialize(definition=publishable())
    def publish(self, definition):
        self.engine.publish(definition)
        for id in ("p", "q"):
            self.create(id, 1)

    def attempt(self, call, *unchanged_after):
        """What the call answers; an error must leave every key as it was."""
        self.now += 7
        silence(self.engine)
        before = dump(self.engine)
        try:
            return call()
        except unchanged_after:
            silence(self.engine)
            assert dump(self.engine) == before
            return None

    def moved(self, instance):
        """Every step is one version."""
        assert instance.revision == self.versions.get(instance.id, 0) + 1
        self.versions[instance.id] = instance.revision

    @rule(id=IDS, n=st.integers(0, 4))
    def create_one(self, id, n):
        self.create(id, n)

    def create(self, id, n):
        made = self.attempt(lambda: self.engine.create("m", id, {"n": n}, now=self.now), SignalboxError)
        if made:
            self.moved(made)

    def fire(self, id, event, payload):
        fired = self.attempt(lambda: self.engine.fire("m", id, event, payload, now=self.now), SignalboxError)
        if fired:
            self.moved(fired)

    @precondition(lambda self: self.versions)
    @rule(data=st.data(), events=st.lists(st.tuples(st.sampled_from(EVENTS), PAYLOADS), min_size=1, max_size=5))
    def fire_one_after_the_other(self, data, events):
        id = data.draw(st.sampled_from(sorted(self.versions)))
        for event, payload in events:
            self.fire(id, event, payload)

    @rule(id=IDS, event=st.sampled_from(EVENTS), payload=PAYLOADS)
    def fire_at_any(self, id, event, payload):
        self.fire(id, event, payload)

    @precondition(lambda self: self.versions)
    @rule(data=st.data(), event=st.sampled_from(EVENTS), payload=PAYLOADS)
    def explain_and_fire_agree(self, data, event, payload):
        id = data.draw(st.sampled_from(sorted(self.versions)))
        at = self.now + 7  # the moment attempt() will set
        seen = self.engine.explain("m", id, event, payload, now=at)
        fired = self.attempt(lambda: self.engine.fire("m", id, event, payload, now=self.now), Refused)
        assert seen.taken == (fired is not None)
        if fired:
            outcome = {
                "configuration": fired.configuration,
                "data": fired.data,
                "transitions": fired.outcome.transitions,
            }
            assert seen.outcome == outcome
            self.moved(fired)

    @precondition(lambda self: self.versions)
    @rule(data=st.data(), event=st.sampled_from(EVENTS), off=st.sampled_from([-1, 1, 5]))
    def a_wrong_version_conflicts(self, data, event, off):
        id = data.draw(st.sampled_from(sorted(self.versions)))
        expect = self.versions[id] + off

        def fire():
            with pytest.raises(Conflict):
                self.engine.fire("m", id, event, expect=expect, now=self.now)
            raise Refused(self.engine.explain("m", id, event))

        self.attempt(fire, Refused)

    @precondition(lambda self: self.versions)
    @rule(data=st.data(), number=st.integers(0, 4))
    def force(self, data, number):
        id = data.draw(st.sampled_from(sorted(self.versions)))
        call = lambda: self.engine.force("m", id, f"S{number}", actor="a", reason="r", now=self.now)  # noqa: E731
        forced = self.attempt(call, SignalboxError)
        if forced:
            self.moved(forced)

    @precondition(lambda self: self.versions)
    @rule(data=st.data())
    def delete(self, data):
        id = data.draw(st.sampled_from(sorted(self.versions)))
        self.gone += self.taken_by(id)
        assert self.engine.delete("m", id).revision == self.versions.pop(id)

    @rule(queue=st.sampled_from(QUEUES), count=st.integers(1, 3))
    def take(self, queue, count):
        self.held += self.attempt(lambda: self.engine.take("m", queue, "w", count=count, lease=100, now=self.now))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), result=st.sampled_from([None, 1, {"x": 2}]))
    def complete(self, data, result):
        job = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        moved = self.attempt(lambda: self.engine.complete(job, result, now=self.now), SignalboxError)
        if moved:
            self.moved(moved)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), retry=st.booleans())
    def fail(self, data, retry):
        job = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        self.attempt(lambda: self.engine.fail(job, "no", retry=retry, now=self.now), SignalboxError)
        self.look_again()

    @rule(later=st.sampled_from([0, 150, 5000]))
    def sweep(self, later):
        self.now += later
        self.engine.sweep("m", now=self.now)
        self.look_again()

    def look_again(self):
        """A job that died may have moved its instance by one step."""
        for id, version in self.versions.items():
            now = self.engine.get("m", id).revision
            assert version <= now <= version + 6
            self.versions[id] = now

    def taken_by(self, id):
        steps = self.engine.history("m", id, limit=10_000)
        return Counter(f"1:{edge}" for step in steps for edge in step.transitions)

    @invariant()
    def the_instances_are_those_we_know(self):
        found = {key.rpartition(":")[2] for key in self.scan("i:*")}
        assert found == set(self.versions)

    @invariant()
    def every_index_and_count_equals_a_scan(self):
        if not self.engine.client.exists(self.keys.meta):
            return
        held = {id: self.engine.get("m", id) for id in self.versions}
        live = self.engine.live("m")
        assert {s: n for s, n in live.counts.items() if n} == Counter(i.state for i in held.values())
        for state in live.counts:
            entered = dict(self.engine.client.zrange(self.keys.state(state), 0, -1, withscores=True))
            assert entered == {i.id: i.entered for i in held.values() if i.state == state}
        assert live.oldest == {s: min(i.entered for i in held.values() if i.state == s) for s in live.oldest}
        assert sorted(i.id for i in self.engine.find("m")) == sorted(held)

    @invariant()
    def flow_is_what_the_histories_tell(self):
        if self.engine.client.exists(self.keys.meta):
            told = sum((self.taken_by(id) for id in self.versions), self.gone.copy())
            assert self.engine.live("m").flow == told

    @invariant()
    def a_history_has_an_entry_for_each_step(self):
        for id, version in self.versions.items():
            steps = self.engine.history("m", id, limit=10_000)
            assert [step.revision for step in steps] == list(range(version, 0, -1))
            assert steps[0].configuration == self.engine.get("m", id).configuration
            assert all(step.source == older.configuration for step, older in pairwise(steps))

    @invariant()
    def every_job_is_in_exactly_one_place_and_every_open_one_is_waited_for(self):
        placed = {}
        for queue in QUEUES:
            for place in PLACES:
                for job in self.engine.client.zrange(getattr(self.keys, place)(queue), 0, -1):
                    assert placed.setdefault(job, (queue, place)) == (queue, place)
        rows = {key.rpartition(":")[2]: read_job(self.engine.client, key) for key in self.scan("job:*")}
        assert placed == {job: (row["queue"], row["place"]) for job, row in rows.items()}
        waited = {job: id for id in self.versions for job in self.engine.get("m", id).jobs}
        unended = {job: row for job, row in rows.items() if row["place"] not in ("dead", "handled")}
        open_jobs = {job: row["instance"] for job, row in unended.items() if row.get("invoke")}
        assert open_jobs == waited

    def scan(self, end):
        return self.engine.client.scan_iter(match=self.keys.root.replace("{", "[{]") + ":" + end, count=1000)


@pytest.mark.hostile
def test_whatever_happens_it_adds_up(redis_url):
    Life.url = redis_url
    run_state_machine_as_test(
        Life,
        settings=settings(max_examples=30, stateful_step_count=25),
    )
