"""Machines in two versions with instances in many situations, and plans from one version to the other."""

from __future__ import annotations

from typing import Any

from machines.engine import Engine, MigrationPlan

LETTER = {
    "id": "letter",
    "initial": "written",
    "context": {
        "type": "object",
        "properties": {"stamps": {"type": "integer", "default": 0}, "note": {"default": "a"}},
    },
    "states": {
        "written": {"on": {"post": "posted", "keep": "kept", "work": "working"}},
        "posted": {"on": {"back": "written", "arrive": "arrived"}, "after": {"1h": "lost"}},
        "working": {"invoke": {"src": "print", "onDone": "posted"}, "on": {"back": "written"}},
        "kept": {"on": {"back": "written"}},
        "lost": {},
        "arrived": {"type": "final"},
    },
}
SECOND = LETTER | {
    "states": {
        "written": {"on": {"post": "sent"}},
        "sent": {"on": {"arrive": "arrived"}, "after": {"1h": "lost"}},
        "working": {"invoke": {"src": "print", "onDone": "sent"}},
        "lost": {},
        "arrived": {"type": "final"},
    },
}


def letters(engine: Engine, count: int, **data: Any) -> list[str]:
    """Create so many letters of version 1; return their ids."""
    engine.publish(LETTER)
    ids = [f"l{number:05}" for number in range(count)]
    for id in ids:
        engine.create("letter", id, data or None, version=1)
    return ids


def to_second(engine: Engine, **given: Any) -> MigrationPlan:
    """Publish the second version of letters; return a plan that moves them there."""
    engine.publish(SECOND)
    return engine.plan("letter", 2, **{"states": {"posted": "sent"}} | given)
