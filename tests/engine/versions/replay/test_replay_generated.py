"""Random charts whose instances live a random life: replayed on their own version, each recorded step repeats."""

import os
import secrets

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from machines.engine import Engine
from tests.conftest import remove
from tests.engine.interpreter.charts.rendering import definition_of
from tests.engine.interpreter.charts.strategies import IDS, Kind, charts

from ..fleets import Fleet

EXAMPLES = int(os.environ.get("REPLAY_CHARTS", "4"))
"""Charts of each kind, each with some 300 recorded steps; ``test_generated_pairs`` replays its own as well.
REPLAY_CHARTS=400 is the long run: some 15 minutes."""
INSTANCES, ROUNDS = 12, 12

pytestmark = [pytest.mark.redis, pytest.mark.timeout(120 + 3 * EXAMPLES)]

KINDS = {
    "timers and work": Kind(timers=True, work=True),
    "messages": Kind(timers=True, mail=True),
    "failures that are raised": Kind(timers=True, work=True, failures=True, raises=True),
}
RUN = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    phases=[Phase.generate],
    report_multiple_bugs=False,
)


@pytest.mark.hostile
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_each_recorded_step_repeats_on_its_own_version(redis_url, kind):
    steps = 0

    @RUN
    @given(chart=charts(kind), seed=st.integers(0, 1_000_000))
    def check(chart, seed):
        nonlocal steps
        engine = Engine.from_url(redis_url, prefix=f"t{secrets.token_hex(4)}:")
        try:
            definition = definition_of(chart)
            engine.publish(definition)
            fleet = Fleet(engine, definition, seed)
            fleet.create(INSTANCES, names=IDS, data=False)
            fleet.live(ROUNDS)
            found = engine.replay(fleet.name, 1)
            assert not found.divergences, found.divergences
            assert not found.untold
            assert found.steps == fleet.count_steps()
            steps += found.steps
        finally:
            remove(engine.client, engine.keys.prefix)
            engine.client.close()

    check()
    assert steps > 50 * EXAMPLES
