"""The machines of the demo: what random instances of them have done repeats on the same version."""

import os

import pytest

from tests.engine.builders import example

from ..fleets import Fleet

STEPS = int(os.environ.get("REPLAY_STEPS", "3000"))
"""Recorded steps to replay in all. REPLAY_STEPS=100000 is the long run: some three minutes."""
MACHINES = ("activation", "delivery", "payment", "service_activation")
INSTANCES = 40

pytestmark = [pytest.mark.redis, pytest.mark.timeout(max(120, STEPS // 30))]


@pytest.mark.parametrize("name", MACHINES)
def test_histories_of_the_demo_repeat_on_their_own_version(engine, name):
    definition = example(name) | {"history": 10_000}
    engine.publish(definition)
    wanted, steps, seed = STEPS // len(MACHINES), 0, 0
    while steps < wanted:
        fleet = Fleet(engine, definition, seed)
        fleet.create(INSTANCES, f"s{seed}-")
        fleet.live(25)
        steps, seed = steps + fleet.count_steps(), seed + 1
    found = engine.replay(name, 1)
    assert not found.divergences, found.divergences
    assert not found.untold
    assert found.steps >= wanted
