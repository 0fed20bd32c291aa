"""Two deliverers that get in each other's way at every point, answers that are lost, instances that cannot be written
for a while: each message has one outcome all the same, and those to one instance come in order."""

from __future__ import annotations

import contextlib
import random

import pytest
import redis

from machines.engine import Engine, EngineUnavailable
from machines.engine.messages import delivery
from tests.engine.builders import publish

from .mailing import corrupt, mend, noter, post, teller, told, waiting

RECEIVERS = ("x", "y", "z", "late")
TURNS = 60


class World:
    """A teller, its noters, and two engines whose every exchange may be disturbed."""

    def __init__(self, url, prefix, seed):
        self.chance = random.Random(seed)
        self.engines = [Engine.from_url(url, prefix=prefix) for _ in range(2)]
        self.first = self.engines[0]
        self.clock = 1000.0
        self.calm = True
        self.broken: set[str] = set()
        self.suspended: set[str] = set()
        self.late = False
        self.posted: dict[str, list[int]] = {id: [] for id in RECEIVERS}
        publish(self.first, noter(), *RECEIVERS[:3])
        publish(self.first, teller(), "t")
        for number, engine in enumerate(self.engines):
            engine._delivery._clock = lambda: self.clock
            engine._caller.many = self.disturbed(engine._caller.many, number)

    def disturbed(self, many, number):
        def call(calls):
            if self.calm or not calls:
                return many(calls)
            self.maybe_the_other(number)
            if self.chance.random() < 0.05:
                raise EngineUnavailable("it was never sent")
            sent = [self.chance.random() > 0.05 for _ in calls]
            answers = iter(many([call for call, goes in zip(calls, sent, strict=True) if goes]))
            found = [next(answers) if goes else self.gone() for goes in sent]
            self.maybe_the_other(number)
            if self.chance.random() < 0.05:
                raise EngineUnavailable("the answers were lost")
            return [answer if self.chance.random() > 0.05 else self.gone() for answer in found]

        return call

    def gone(self):
        """What one node of a cluster that is away leaves in the place of an answer."""
        return redis.ConnectionError("the node is gone")

    def maybe_the_other(self, number):
        """In the middle of what one does, the other does all it does, undisturbed or not."""
        if self.chance.random() < 0.2:
            self.calm = self.chance.random() < 0.7
            try:
                self.drive(1 - number)
            finally:
                self.calm = False

    def drive(self, number):
        with contextlib.suppress(EngineUnavailable):
            self.engines[number].drive(["teller", "noter"], retry=self.chance.random() < 0.1)

    def turn(self):
        kind = self.chance.choice(
            ["post", "post", "post", "drive", "drive", "drive", "break", "mend", "hold", "wait", "late"]
        )
        getattr(self, f"do_{kind}")()

    def do_post(self):
        for _ in range(self.chance.randint(1, 6)):
            id = self.chance.choice(RECEIVERS)
            number = sum(map(len, self.posted.values()))
            self.posted[id].append(number)
            post(self.first, id, number)

    def do_drive(self):
        self.calm = False
        self.drive(self.chance.randrange(2))
        self.calm = True

    def do_break(self):
        id = self.chance.choice(RECEIVERS[:3])
        if id not in self.broken | self.suspended:
            self.broken.add(id)
            corrupt(self.first, id)

    def do_mend(self):
        if self.broken:
            mend(self.first, self.broken.pop())

    def do_hold(self):
        id = self.chance.choice(RECEIVERS[:3])
        if id in self.broken:
            return
        if id in self.suspended:
            self.suspended.remove(id)
            self.first.resume("noter", id, actor="a", reason="r")
        else:
            self.suspended.add(id)
            self.first.suspend("noter", id, actor="a", reason="r")

    def do_wait(self):
        self.clock += self.chance.choice([0.1, 1, 20, 100])

    def do_late(self):
        if not self.late and self.chance.random() < 0.3:
            self.late = True
            self.first.create("noter", "late")

    def come_to_rest(self):
        while self.broken:
            self.do_mend()
        for id in self.suspended:
            self.first.resume("noter", id, actor="a", reason="r")
        while self.first.tick():
            pass

    def close(self):
        for engine in self.engines:
            engine.client.close()


@pytest.mark.parametrize("seed", range(40))
def test_each_message_has_one_outcome_and_its_place_in_the_order(redis_url, prefix, monkeypatch, seed):
    monkeypatch.setattr(delivery, "STEADY", delivery.DeliveryLimits(rounds=3, messages=3, lag=0.0))
    world = World(redis_url, prefix, seed)
    for _ in range(TURNS):
        world.turn()
    world.come_to_rest()
    assert waiting(world.first) == 0
    for id in RECEIVERS[:3]:
        assert told(world.first, id) == world.posted[id]
    lost = world.first.get("teller", "t").data["lost"]
    arrived = told(world.first, "late") if world.late else []
    assert set(lost) <= {"there is no instance late", "it could not be applied when it came first"}
    assert len(lost) + len(arrived) == len(world.posted["late"])
    assert arrived == world.posted["late"][len(world.posted["late"]) - len(arrived) :], "once it is there, it gets all"
    world.close()
