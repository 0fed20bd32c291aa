"""Random calls on a queue: what Redis holds afterwards is what a model in plain Python holds."""

import secrets

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from machines.engine import Engine, LeaseLost, Miscounted
from tests.conftest import remove
from tests.engine.builders import NOW, machine, publish

from .queue_model import Model, ModelInstance
from .queueing import places

STATES = {
    "Idle": {"on": {"start": "Busy"}},
    "Busy": {
        "invoke": {"src": "work", "onDone": "Done", "retry": {"attempts": 2, "jitter": False}},
        "on": {"abandon": "Idle"},
    },
    "Done": {"on": {"again": "Idle"}},
}
IDS = ("p", "q", "r")
WHO = {"actor": "a", "reason": "r"}
UNIQUE = st.sampled_from([None, None, "u", "v"])
DELAYS = st.sampled_from([0, 0, 0, 50, 3000])


class Queue(RuleBasedStateMachine):
    url = ""

    def __init__(self):
        super().__init__()
        self.engine = Engine.from_url(self.url, prefix=f"t{secrets.token_hex(4)}:")
        publish(self.engine, machine("m", STATES), *IDS)
        self.model = Model(instances={id: ModelInstance("Idle", NOW) for id in IDS})
        self.now = NOW
        self.held = []  # jobs as they were taken, some of them lost since

    def teardown(self):
        remove(self.engine.client, self.engine.keys.prefix)
        self.engine.client.close()

    def later(self):
        self.now += 7
        return self.now

    @rule(ms=st.sampled_from([1, 60, 1000, 5000, 40_000]))
    def time_goes_by(self, ms):
        self.now += ms

    @rule(
        jobs=st.lists(
            st.fixed_dictionaries(
                {
                    "priority": st.sampled_from([0, 5, 5, 9]),
                    "delay": DELAYS,
                    "unique": UNIQUE,
                    "debounced": st.booleans(),
                    "attempts": st.integers(1, 2),
                    "timeout": st.sampled_from([0, 0, 2000]),
                }
            ),
            min_size=1,
            max_size=4,
        )
    )
    def enqueue(self, jobs):
        now = self.later()
        for facts in jobs:
            if facts.pop("debounced") and facts["unique"]:
                facts["debounce"] = facts.pop("delay") or 20
        put = self.engine.enqueue_many([{"machine": "m", "src": "work", "jitter": False, "now": now} | j for j in jobs])
        for job, facts in zip(put, jobs, strict=True):
            modelled = self.model.enqueue(now, **(facts | {"unique": facts["unique"] or ""}))
            assert job.id == modelled.id

    @rule(id=st.sampled_from(IDS))
    def fire(self, id):
        now, state = self.later(), self.model.instances[id].state
        event = {"Idle": "start", "Busy": "abandon", "Done": "again"}[state]
        self.engine.fire("m", id, event, now=now)
        if event == "start":
            self.model.start(id, now)
        else:
            self.model.abandon(id, now)

    @rule(count=st.integers(1, 5), lease=st.sampled_from([None, 500, 10_000]))
    def take(self, count, lease):
        now = self.later()
        taken = self.engine.take("m", "work", "w", count=count, lease=lease, now=now)
        expected = self.model.take(now, count, lease)
        assert [(job.id, job.attempt, job.lease_until) for job in taken] == [
            (job.id, job.attempt, job.until) for job in expected
        ]
        for job, modelled in zip(taken, expected, strict=True):
            modelled.token = job.token
            self.held.append(job)

    def choose(self, data):
        """A job that was taken once, and its model where the token still holds it."""
        job = data.draw(st.sampled_from(self.held))
        modelled = self.model.jobs.get(job.id)
        return job, modelled if modelled and modelled.place == "leased" and modelled.token == job.token else None

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def complete(self, data):
        now = self.later()
        chosen = [self.choose(data) for _ in range(data.draw(st.integers(1, 3)))]
        ended = self.engine.complete_many([(job, {"x": 1}) for job, _ in chosen], now=now)
        for (job, modelled), outcome in zip(chosen, ended, strict=True):
            if modelled is None or job.id not in self.model.jobs:
                assert isinstance(outcome, LeaseLost)
            else:
                waits = self.model.instances.get(modelled.instance)
                assert (outcome is not None) == bool(waits and waits.job == job.id)
                self.model.complete(modelled, now)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), retry=st.booleans())
    def fail(self, data, retry):
        now, (job, modelled) = self.later(), self.choose(data)
        if modelled is None:
            with pytest.raises(LeaseLost):
                self.engine.fail(job, "no", retry=retry, now=now)
        else:
            assert self.engine.fail(job, "no", retry=retry, now=now) == self.model.fail(modelled, now, retry)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), delay=DELAYS)
    def hand_back(self, data, delay):
        now, (job, modelled) = self.later(), self.choose(data)
        if modelled is None:
            with pytest.raises(LeaseLost):
                self.engine.hand_back(job, delay=delay, now=now)
        else:
            self.engine.hand_back(job, delay=delay, now=now)
            self.model.hand_back(modelled, now, delay)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), lease=st.sampled_from([500, 20_000]))
    def extend(self, data, lease):
        now, (job, modelled) = self.later(), self.choose(data)
        assert self.engine.extend(job, lease, now=now) == [modelled is not None]
        if modelled:
            modelled.until = now + lease
            modelled.until = min(modelled.until, modelled.deadline) if modelled.deadline else modelled.until

    @rule()
    def sweep(self):
        now = self.later()
        assert self.engine.sweep("m", now=now) == self.model.sweep(now)

    @rule()
    def tick(self):
        now = self.later()
        assert self.engine.drive(["m"], now=now).moved == self.model.sweep(now, leeway=500)

    @rule(paused=st.booleans(), concurrency=st.sampled_from([0, 0, 1, 3]))
    def rule_the_queue(self, paused, concurrency):
        (self.engine.pause if paused else self.engine.resume_queue)("m", "work", **WHO)
        self.engine.limit("m", "work", concurrency=concurrency)
        self.model.paused, self.model.concurrency = paused, concurrency

    @rule()
    def redrive(self):
        assert self.engine.redrive("m", "work", now=self.later(), **WHO) == self.model.redrive()

    @rule()
    def move_now(self):
        assert self.engine.move_now("m", "work", now=self.later(), **WHO) == self.model.move_now()

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data(), delay=DELAYS)
    def delay(self, data, delay):
        job = self.model.jobs[data.draw(st.sampled_from(sorted(self.model.jobs)))]
        now = self.later()
        moved = self.engine.reschedule("m", job.id, until=now + delay, now=now, **WHO)
        assert moved == (job.place in ("ready", "delayed"))
        if moved:
            job.place, job.due = "delayed", now + delay

    @rule(place=st.sampled_from(["ready", "delayed", "dead"]), off=st.sampled_from([0, 0, 0, 1]))
    def purge(self, place, off):
        there = self.model.within(place)
        options = {"place": place, "expect": len(there) + off, "now": self.later(), **WHO}
        if off:
            with pytest.raises(Miscounted):
                self.engine.purge("m", "work", **options)
            return
        assert self.engine.purge("m", "work", **options) == len(there)
        for job in there:
            self.model.remove(job, "purged")

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def withdraw(self, data):
        job = self.model.jobs[data.draw(st.sampled_from(sorted(self.model.jobs)))]
        self.engine.withdraw("m", job.id, now=self.later(), **WHO)
        self.model.remove(job, "withdrawn")

    @invariant()
    def each_job_is_where_the_model_has_it_and_nowhere_else(self):
        assert places(self.engine, name="m") == {job.id: job.place for job in self.model.jobs.values()}

    @invariant()
    def each_place_has_its_order(self):
        for place in ("ready", "leased", "delayed"):
            listed = [job.id for job in self.engine.jobs("m", "work", place=place, limit=1000)]
            assert listed == [job.id for job in self.model.within(place)]

    @invariant()
    def each_instance_waits_for_the_job_the_model_says(self):
        for id, modelled in self.model.instances.items():
            held = self.engine.get("m", id)
            assert (held.state, " ".join(held.jobs)) == (modelled.state, modelled.job)

    @invariant()
    def the_statistics_add_up(self):
        stats = self.engine.stats("m")["work"]
        assert {name: getattr(stats, name) for name in self.model.counted} == self.model.counted

    @invariant()
    def unique_keys_are_those_of_open_jobs(self):
        root = self.engine.keys.partition("m").root
        pattern = f"{root.replace('{', '[{]')}:u:work:*"
        held = {key.rpartition(":")[2]: self.engine.client.get(key) for key in self.engine.client.scan_iter(pattern)}
        jobs = self.model.jobs.values()
        assert held == {job.unique: job.id for job in jobs if self.model.holder(job.unique) is job}


@pytest.mark.hostile
def test_a_queue_does_what_the_model_does(redis_url):
    Queue.url = redis_url
    run_state_machine_as_test(
        Queue,
        settings=settings(max_examples=60, stateful_step_count=30),
    )
