"""Pairs of random definitions with random fleets: every instance moves or is listed with its reason, what Redis holds
stays sound, the way back is the identity, and a moved instance behaves like one of the new version."""

from __future__ import annotations

import os
import random
import secrets

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from machines.engine import Engine, PlanError, SignalboxError
from tests.conftest import remove
from tests.engine.interpreter.charts.rendering import definition_of
from tests.engine.interpreter.charts.strategies import Kind, charts

from ..fleets import Fleet
from ..pairs import edit
from ..storage_audit import StorageAudit

FEW, MANY = 3, int(os.environ.get("VERSION_PAIRS", "10"))
"""Pairs of each kind in a quick run, and of all kinds in the tests of the slow kind ``hostile``: VERSION_PAIRS=1000 is
the long run."""
INSTANCES, ROUNDS = 8, 5

pytestmark = [pytest.mark.redis, pytest.mark.timeout(300 + 6 * MANY)]

KINDS = {
    "timers and work": Kind(timers=True, work=True),
    "failures that are raised": Kind(timers=True, work=True, failures=True, raises=True),
}


class Trial:
    """One pair of versions, a fleet of the first one, and a plan between them."""

    def __init__(self, engine: Engine, chart, seed: int) -> None:
        self.engine, self.random = engine, random.Random(seed)
        self.old = definition_of(chart)
        self.new = edit(self.old, seed)
        self.fleet = Fleet(engine, self.old, seed)
        self.name = self.fleet.name
        engine.publish(self.old)
        self.fleet.create(INSTANCES, data=False)
        self.fleet.live(ROUNDS)
        engine.publish(self.new)
        self.audit = StorageAudit(engine, self.name, {1: self.old, 2: self.new})

    def plan(self):
        """A plan with random states and policies; by name alone where those cannot be."""
        leaves = [each["name"] for each in self.audit.versions[2].states if each.get("kind") != "history"]
        old = [each["name"] for each in self.audit.versions[1].states if "kind" not in each]
        states = {name: self.random.choice(leaves) for name in old if self.random.random() < 0.3}
        pick = self.random.choice
        policies = {
            "unmapped": pick(["refuse", "keep"]), "timers": pick(["entry", "now"]), "removed": pick(["drop", "keep"]),
            "suspended": pick(["move", "move", "refuse"]),
        }  # fmt: skip
        data = {"n": "n + 1"} if self.random.random() < 0.3 else None
        for attempt in ({"states": states, "data": data}, {"states": states}, {}):
            try:
                return self.engine.plan(self.name, 2, **attempt, **policies)
            except PlanError:
                continue
        return None

    def rest(self) -> None:
        """Give running jobs back: the way back makes a running job ready, because its worker was told to stop."""
        for queue in self.engine.queues(self.name):
            for job in self.engine.jobs(self.name, queue, place="leased"):
                self.engine.hand_back(job, now=self.fleet.now)

    # What is checked

    def check(self) -> int:
        plan = self.plan() if self.new != self.old else None
        if plan is None:
            return 0
        before = {id: self.audit.dump(id) for id in self.audit.check()}
        self.check_replay()
        seen = self.engine.dry_run(plan, share=1)
        assert {id: self.audit.dump(id) for id in before} == before
        done = self.engine.migrate(plan, actor="", reason="a test")
        rows = self.audit.check()
        moved = {id for id, row in rows.items() if row["_def"].startswith("2:")}
        refused = {one.id: one for one in done.refused}
        assert set(rows) == set(before)
        assert done.moved == len(moved)
        assert done.moved + len(refused) + done.kept + done.already == len(before)
        assert not moved & set(refused)
        assert all(one.code and one.reason for one in done.refused)
        assert {id: self.audit.dump(id) for id in before if id not in moved} == {
            id: one for id, one in before.items() if id not in moved
        }
        self.check_dry_run(seen, done)
        self.check_likeness(sorted(moved))
        self.check_way_back(plan, before, moved)
        return len(moved)

    def check_replay(self) -> None:
        """Each recorded step repeats on its own version; on the new one, each is replayed, skipped or untold."""
        same, other = self.engine.replay(self.name, 1), self.engine.replay(self.name, 2)
        assert (same.divergences, same.untold) == ([], {})
        assert same.steps == same.recorded == other.recorded == self.fleet.count_steps()

    def check_dry_run(self, seen, done) -> None:
        outcomes = {"moves": 0, "kept": 0, "refused": 0, "suspends": 0}
        for one in seen.classes:
            outcomes[one.outcome] += one.count
        assert sum(outcomes.values()) == seen.total
        assert outcomes["moves"] == done.moved
        assert outcomes["kept"] + outcomes["suspends"] == done.kept + done.already
        assert {(one.id, one.code) for one in seen.refused} == {(one.id, one.code) for one in done.refused}

    def check_way_back(self, plan, before, moved) -> None:
        """Instances that took no step since are as before, once their twins are gone."""
        self.engine.migrate(plan.inverse(), reason="a test")
        rows = self.audit.check()
        back = {id for id in moved if rows[id]["_def"].startswith("1:")}
        assert {id: self.audit.dump(id) for id in back} == {id: before[id] for id in back}
        assert back == moved

    def check_likeness(self, moved) -> None:
        """A moved instance and one that was created in the new version and forced into the same states and data take
        the same steps. It is tried on copies: what the events do here must not disturb the way back."""
        engine, now = self.engine, self.fleet.now + 1
        for id in moved[:2]:
            held = engine.get(self.name, id)
            if held.suspended or held.done or self.has_memory(id):
                continue
            twin, data = f"twin-{id}", {name: held.data.get(name) for name in held.data}
            try:
                engine.create(self.name, twin, version=2, now=now)
            except SignalboxError:
                continue
            absent = {name: None for name in engine.get(self.name, twin).data if name not in data}
            try:
                engine.force(self.name, twin, held.configuration, data=data | absent, actor="a", reason="r", now=now)
            except SignalboxError:
                engine.delete(self.name, twin, actor="a", reason="r")
                continue
            for event in [] if self.has_memory(twin) else [*self.fleet.events, "new"]:
                given = self.fleet.payload(event)
                one = engine.explain(self.name, id, event, given, now=now)
                other = engine.explain(self.name, twin, event, given, now=now)
                assert (one.taken, one.why, _read(one.outcome)) == (other.taken, other.why, _read(other.outcome))
            engine.delete(self.name, twin, actor="a", reason="r")

    def has_memory(self, id: str) -> bool:
        """Tell whether a history state has recorded something: forcing does not set that."""
        return any(name.startswith("_h:") for name in self.engine.client.hkeys(self.audit.keys.instance(id)))


def _read(outcome):
    """An outcome without fields that hold nothing: force cannot unset those of any type."""
    if outcome is None:
        return None
    return outcome | {"data": {name: value for name, value in outcome["data"].items() if value is not None}}


def check_pairs(redis_url, kind, count, first):
    moved = pairs = 0

    @seed(first)
    @settings(
        max_examples=count, database=None, phases=[Phase.generate], report_multiple_bugs=False,
    )  # fmt: skip
    @given(chart=charts(kind), number=st.integers(0, 1_000_000))
    def check(chart, number):
        nonlocal moved, pairs
        engine = Engine.from_url(redis_url, prefix=f"t{secrets.token_hex(4)}:")
        try:
            trial = Trial(engine, chart, number)
            trial.rest()
            moved += trial.check()
            pairs += 1
        finally:
            remove(engine.client, engine.keys.prefix)
            engine.client.close()

    check()
    assert moved > pairs


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_instance_moves_or_is_listed_and_the_way_back_is_the_identity(redis_url, kind):
    check_pairs(redis_url, kind, FEW, first=0)


@pytest.mark.hostile
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_same_for_many_pairs(redis_url, kind):
    check_pairs(redis_url, kind, max(1, MANY // len(KINDS)), first=1)
