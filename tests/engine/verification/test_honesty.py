"""Random charts: what random runs do never contradicts a finding, nor what was proven."""

import os
import random
import secrets

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from machines.engine import Engine, SignalboxError
from machines.engine.definitions import compile_definition, render
from machines.engine.definitions.reading.document import read_sound_machine
from tests.conftest import remove
from tests.engine.interpreter.charts.rendering import definition_of
from tests.engine.interpreter.charts.strategies import Kind, charts

CHARTS = int(os.environ.get("VERIFIED_CHARTS", "2"))
"""Charts of each kind."""
RUNS, STEPS, BUDGET = 6, 25, 300

pytestmark = [pytest.mark.redis, pytest.mark.timeout(120 + 60 * CHARTS)]

KINDS = {
    "plain": Kind(looks=False),
    "payloads": Kind(),
    "timers and work": Kind(timers=True, work=True),
    "failures": Kind(work=True, failures=True),
    "failures that are raised": Kind(failures=True, raises=True),
}
RUN = settings(
    max_examples=CHARTS,
    derandomize=True,
    phases=[Phase.generate],
    report_multiple_bugs=False,
)


def live(engine, definition, source):
    """Return the records of one random run."""
    names = compile_definition(definition).program.get("known", ["none"])
    inputs = [
        source.choice([(source.choice(names), source.choice([{}, {"x": 1}, {"x": 2}])), {"advance": "next"}])
        for _ in range(STEPS)
    ]
    found = engine.simulate(definition, inputs)
    jobs = found[-1].jobs
    if jobs:
        end = source.choice([{"done": None}, {"failed": "no"}])
        found = engine.simulate(definition, [*inputs, {"job": jobs[0]["invoke"], **end}])
    return found


def check(definition, findings, records):
    machine = read_sound_machine(definition)
    found = {one.path: one for one in findings if one.verdict == "found"}
    proven = {one.code for one in findings if one.verdict == "proven"}
    assert not proven & {one.code for one in findings if one.verdict == "found"}
    lost = {
        state.name for state in machine.states.values() if getattr(found.get(render(state.path)), "code", "") == "SB801"
    }
    dead = {
        transition.id
        for state in machine.states.values()
        for transition in state.all_transitions
        if getattr(found.get(render(transition.path)), "code", "") in ("SB802", "SB806")
    }
    for record in records:
        assert not lost & set(record.configuration)
        assert not dead & set(record.transitions), (dead, record.transitions)
        if record.outcome == "failed" and "come to rest" in (record.error or ""):
            assert "SB804" not in proven
    last = records[-1]
    if last.configuration and not (last.done or last.next or last.timers or last.jobs or last.children):
        assert "SB803" not in proven


@pytest.mark.hostile
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_random_charts(redis_url, kind):
    decided = 0

    @RUN
    @given(chart=charts(kind), seed=st.integers(0, 1_000_000))
    def judge(chart, seed):
        nonlocal decided
        engine = Engine.from_url(redis_url, prefix=f"t{secrets.token_hex(4)}:")
        try:
            definition = definition_of(chart)
            findings = engine.verify(definition, budget=BUDGET, seconds=20)
            decided += sum(one.verdict != "undecided" for one in findings)
            source = random.Random(seed)
            for _ in range(RUNS):
                try:
                    check(definition, findings, live(engine, definition, source))
                except SignalboxError as error:
                    assert error.code == "SB638"  # noqa: PT017
            for one in findings:
                if one.verdict == "found":
                    engine.simulate(definition, one.run, one.data)
        finally:
            remove(engine.client, engine.keys.prefix)
            engine.client.close()

    judge()
    assert decided
