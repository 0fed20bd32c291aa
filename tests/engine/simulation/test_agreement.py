"""A simulated instance does what a stored one does: state, data, history, timers, jobs, messages and log entries."""

import os
import secrets

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from machines.engine import Engine
from tests.cases import for_each
from tests.conftest import remove
from tests.engine.builders import NOW, example
from tests.engine.interpreter.charts.rendering import definition_of
from tests.engine.interpreter.charts.strategies import Kind, charts

from .twin import ID, Life, compare

RUNS = int(os.environ.get("SIMULATED_RUNS", "60"))
"""Random lives in all. SIMULATED_RUNS=1000 is the long run."""
STEPS = 20
MACHINES = ("activation", "delivery", "payment", "service_activation", "new_device")

pytestmark = [pytest.mark.redis, pytest.mark.timeout(120 + RUNS)]

KINDS = {
    "plain": Kind(),
    "timers and work": Kind(timers=True, work=True),
    "messages": Kind(timers=True, mail=True),
    "failures that are raised": Kind(timers=True, work=True, failures=True, raises=True),
    "failures that refuse": Kind(timers=True, work=True, failures=True),
}
RUN = settings(
    max_examples=max(1, RUNS * 2 // 3 // len(KINDS)),
    derandomize=True,
    phases=[Phase.generate],
    report_multiple_bugs=False,
)


def live(engine, definition, seed):
    """Return how many steps agree."""
    engine.publish(definition)
    life = Life(engine, definition, seed)
    if not life.live(STEPS):
        found = engine.simulate(definition, [], id=ID, now=NOW)
        assert [record.outcome for record in found] == ["failed"]
        return 0
    return compare(life, life.inputs, engine.simulate(definition, life.inputs, id=ID, now=NOW))


@pytest.mark.hostile
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_random_charts(redis_url, kind):
    steps = 0

    @RUN
    @given(chart=charts(kind), seed=st.integers(0, 1_000_000))
    def check(chart, seed):
        nonlocal steps
        engine = Engine.from_url(redis_url, prefix=f"t{secrets.token_hex(4)}:")
        try:
            steps += live(engine, definition_of(chart) | {"history": 10_000}, seed)
        finally:
            remove(engine.client, engine.keys.prefix)
            engine.client.close()

    check()
    assert steps > RUN.max_examples


@for_each("name", MACHINES)
def test_machines_of_the_examples(redis_url, name):
    steps = 0
    for seed in range(max(1, RUNS // 3 // len(MACHINES))):
        engine = Engine.from_url(redis_url, prefix=f"t{secrets.token_hex(4)}:")
        try:
            steps += live(engine, example(name) | {"history": 10_000}, seed)
        finally:
            remove(engine.client, engine.keys.prefix)
            engine.client.close()
    assert steps > 0
