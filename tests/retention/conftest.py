"""Instances that have ended, and the duty that lets go of them without rests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from machines.catalog import publishing
from machines.conf.server_share import ServerShare
from machines.engine import Engine
from machines.instances.archive.store import get_archive
from machines.retention.duty import RetentionDuty

DAY = 86_400_000
STATES = {
    "New": {"on": {"pay": {"target": "Paid", "actions": {"set": {"note": "event.note"}}}, "drop": "Dropped"}},
    "Paid": {"on": {"ship": "Shipped"}},
    "Shipped": {"type": "final"},
    "Dropped": {"type": "final"},
}
CONTEXT = {
    "type": "object",
    "properties": {
        "email": {"type": "string", "default": "", "sensitive": True},
        "amount": {"type": "integer", "default": 5},
        "note": {"type": "string", "default": ""},
    },
}


def parcel(**top: Any) -> dict[str, Any]:
    return {"id": "parcel", "initial": "New", "context": CONTEXT, "index": ["amount"], "states": STATES, **top}


class Restless(ServerShare):
    """Counts what was spent and rests never."""

    def __init__(self) -> None:
        super().__init__()
        self.spent = 0

    def spend(self, micros: int) -> None:
        self.spent += micros


@pytest.fixture
def share() -> Restless:
    return Restless()


@pytest.fixture
def duty(engine: Engine, share: Restless, transactional_db: None) -> RetentionDuty:
    return RetentionDuty(engine, share=share)


@pytest.fixture
def ship(engine: Engine, transactional_db: None) -> Callable[..., None]:
    """Publish the machine with its ``retain``, and end an instance for each id so many ms ago."""

    def made(*ids: str, ago: int = 2 * DAY, email: str = "", note: str = "", **top: Any) -> None:
        publishing.publish(parcel(**top))
        at = engine.emitted_logs().now() - ago
        for id in ids:
            engine.create("parcel", id, {"email": email}, now=at)
            engine.fire("parcel", id, "pay", {"note": note}, actor="ann", reason="by phone", now=at)
            engine.fire("parcel", id, "ship", now=at)

    return made


def run(duty: RetentionDuty) -> None:
    """Let the duty go on until nothing is due."""
    while duty.run_once():
        pass


def archived(machine: str = "parcel") -> list[str]:
    return sorted(record.instance for record in get_archive().walk(machine))
