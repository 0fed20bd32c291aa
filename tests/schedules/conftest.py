"""A machine that schedules act on, and a clock that the test sets."""

from __future__ import annotations

import pytest

from machines.engine import Engine

from .clock import Clock

REPORT = {
    "id": "report",
    "initial": "open",
    "history": 1000,
    "context": {"rounds": 0, "last": ""},
    "events": {"remind": {"payload": {"text": "hello"}}},
    "states": {
        "open": {
            "on": {
                "remind": {"actions": {"set": {"rounds": "rounds + 1"}}},
                "close": "closed",
            }
        },
        "making": {"invoke": {"src": "make_report"}},
        "closed": {"type": "final"},
    },
}


@pytest.fixture
def clock(engine: Engine) -> Clock:
    engine.publish(REPORT)
    return Clock(engine)
