"""A machine with a queue whose counters a test moves, and readings of it at times the test says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from machines.engine import Engine, Refused, Survey
from machines.insight.statistics import recording
from tests.engine.builders import errand

MINUTE = 60_000
START = 1_700_000_040_000  # ms: a full minute
LAMP = {
    "id": "lamp",
    "initial": "off",
    "states": {
        "off": {"on": {"press": "on"}},
        "on": {"on": {"press": "off", "smash": "broken"}},
        "broken": {"type": "final"},
    },
}


def survey_at(engine: Engine, now: int) -> Survey:
    """Everything there is, as if it had been read then."""
    found = engine.survey()
    return replace(found, now=now, lives={name: replace(live, now=now) for name, live in found.lives.items()})


@pytest.fixture
def box(engine: Engine, transactional_db: None) -> Engine:
    """The machine ``errand`` with one instance, which waits for its start."""
    engine.publish(errand())
    engine.create("errand", "one")
    return engine


@pytest.fixture
def sample(box: Engine) -> Callable[..., bool]:
    """``sample(2)``: measures as if it were two minutes after the start."""

    def sample(minutes: float) -> bool:
        now, seen = START + int(minutes * MINUTE), recording.turn()
        return recording.record(survey_at(box, now), seen, now=now)

    return sample


@pytest.fixture
def rounds(box: Engine) -> Callable[[int], None]:
    """``rounds(3)``: three times there and back, six transitions in all, and as many jobs put and withdrawn."""

    def rounds(times: int) -> None:
        for _ in range(times):
            box.fire("errand", "one", "start")
            box.fire("errand", "one", "abandon")

    return rounds


@pytest.fixture
def refuse(box: Engine) -> Callable[[int], None]:
    def refuse(times: int) -> None:
        for _ in range(times):
            with pytest.raises(Refused):
                box.fire("errand", "one", "abandon")

    return refuse
