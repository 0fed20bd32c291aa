"""Random calls on a queue of groups with limits: what is taken is what a model in plain Python allows."""

import secrets
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from machines.engine import Engine, LeaseLost
from tests.conftest import remove
from tests.engine.builders import NOW, door, publish

from .group_members import list_wrong_members

GROUPS = ("a", "b", "c")
WHO = {"actor": "a", "reason": "r"}
DEFAULT = 2  # jobs at a time of each group, as declared


@dataclass
class ModelGroup:
    """``tokens`` and ``at``: the bucket of its rate, ``interval`` ms for a token; 0 for no rate."""

    concurrency: int = DEFAULT
    interval: int = 0
    burst: int = 1
    paused: bool = False
    tokens: float = 1
    at: int = NOW
    leased: set[str] = field(default_factory=set)

    def fill(self, now: int) -> None:
        if self.interval:
            self.tokens = min(self.burst, self.tokens + (now - self.at) / self.interval)
        self.at = now

    def has_room(self) -> bool:
        free = not self.concurrency or len(self.leased) < self.concurrency
        return free and not self.paused and (not self.interval or self.tokens >= 1 - 1e-9)


class Yard(RuleBasedStateMachine):
    url = ""

    def __init__(self):
        super().__init__()
        self.engine = Engine.from_url(self.url, prefix=f"t{secrets.token_hex(4)}:")
        publish(self.engine, door(queues={"work": {"groups": {"concurrency": DEFAULT}}}))
        self.groups = {group: ModelGroup() for group in GROUPS}
        self.waiting = {}  # job -> group and ms at which it may be taken
        self.held = {}  # job -> Job as it was taken last
        self.now = NOW

    def teardown(self):
        remove(self.engine.client, self.engine.keys.prefix)
        self.engine.client.close()

    def later(self, ms=1):
        self.now += ms
        for group in self.groups.values():
            group.fill(self.now)
        return self.now

    @rule(ms=st.sampled_from([1, 40, 1000, 40_000]))
    def time_goes_by(self, ms):
        self.later(ms)

    @rule(group=st.sampled_from(GROUPS), count=st.integers(1, 6), priority=st.sampled_from([0, 5, 9]),
          delay=st.sampled_from([0, 0, 50]), weight=st.sampled_from([1, 3]))  # fmt: skip
    def enqueue(self, group, count, priority, delay, weight):
        now = self.later()
        item = {"machine": "door", "src": "work", "now": now, "group": group, "attempts": 9, "jitter": False}
        item |= {"priority": priority, "delay": delay, "weight": weight, "backoff": 30}
        for job in self.engine.enqueue_many([item] * count):
            self.waiting[job.id] = group, now + delay

    @rule(count=st.integers(1, 9))
    def take(self, count):
        now, left = self.later(), count
        for _ in range(9):  # held jobs are made ready over several takes
            taken = self.engine.take("door", "work", "w", count=left, lease=500, now=now)
            for job in taken:
                group, due = self.waiting.pop(job.id)
                assert due <= now
                assert self.groups[group].has_room(), f"{job.id} of {group} passes the limit"
                self.groups[group].leased.add(job.id)
                self.groups[group].tokens -= 1
                self.held[job.id] = job
            left -= len(taken)
            if not left:
                return
        stuck = [job for job, (group, due) in self.waiting.items() if due <= now and self.groups[group].has_room()]
        assert not stuck, "limits allow them, and nothing was taken"

    def end(self, job):
        self.groups[job.group].leased.discard(job.id)
        self.held.pop(job.id)

    def choose(self, data):
        return self.held[data.draw(st.sampled_from(sorted(self.held)))]

    @precondition(lambda self: self.held)
    @rule(data=st.data(), many=st.booleans())
    def complete(self, data, many):
        now, job = self.later(), self.choose(data)
        if many:
            first, second = self.engine.complete_many([(job, None), (job, None)], now=now)
            assert first is None
            assert isinstance(second, LeaseLost)
        else:
            self.engine.complete(job, now=now)
        self.end(job)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), how=st.sampled_from(["fail", "bury", "hand back", "withdraw"]))
    def come_back(self, data, how):
        now, job = self.later(), self.choose(data)
        self.end(job)
        if how == "fail":
            place = self.engine.fail(job, "no", now=now)
            if place == "delayed":
                found = self.engine.job("door", job.id)
                self.waiting[job.id] = job.group, found.due
        elif how == "bury":
            self.engine.fail(job, "no", retry=False, now=now)
        elif how == "hand back":
            self.engine.hand_back(job, now=now)
            self.waiting[job.id] = job.group, now
        else:
            self.engine.withdraw("door", job.id, now=now, **WHO)

    @rule()
    def sweep(self):
        now = self.later()
        lost = [job for job in self.held.values() if job.lease_until <= now]
        self.engine.sweep("door", now=now)
        for job in lost:
            self.end(job)
            if job.attempt < job.attempts:
                self.waiting[job.id] = job.group, now

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def withdraw(self, data):
        job = data.draw(st.sampled_from(sorted(self.waiting)))
        self.engine.withdraw("door", job, now=self.later(), **WHO)
        del self.waiting[job]

    @rule(group=st.sampled_from(GROUPS), concurrency=st.sampled_from([None, 0, 1, 4]),
          rate=st.sampled_from([0, 25, 400]), burst=st.sampled_from([1, 3]))  # fmt: skip
    def limit(self, group, concurrency, rate, burst):
        self.later()
        text = f"1/{rate}ms burst {burst}" if rate else "none"
        self.engine.limit("door", "work", group=group, concurrency=concurrency, rate=text)
        of = self.groups[group]
        of.concurrency = DEFAULT if concurrency is None else concurrency
        of.interval, of.burst, of.tokens = rate, burst, burst

    @rule(group=st.sampled_from(GROUPS), paused=st.booleans())
    def pause(self, group, paused):
        act = self.engine.pause if paused else self.engine.resume_queue
        act("door", "work", group=group, now=self.later(), **WHO)
        self.groups[group].paused = paused

    @rule()
    def mend(self):
        """The key of all members is lost; the check of all jobs brings it back."""
        self.engine.client.delete(self.engine.keys.partition("door").members("work"))
        self.engine.mend("door", now=self.later())

    @invariant()
    def each_member_is_where_it_says(self):
        assert not list_wrong_members(self.engine.client, self.engine.keys.partition("door"), "work")

    @invariant()
    def no_job_is_lost(self):
        depth = self.engine.queues("door").get("work", Counter())
        assert depth.get("ready", 0) + depth.get("delayed", 0) == len(self.waiting)
        assert depth.get("leased", 0) == len(self.held)


def test_limits_of_groups_do_what_the_model_does(redis_url):
    Yard.url = redis_url
    run_state_machine_as_test(Yard, settings=settings(max_examples=10, stateful_step_count=30))
