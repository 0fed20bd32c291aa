"""Publishes the machine of schedules with the first schedule. A version that an operator published stays."""

from __future__ import annotations

from pathlib import Path

from machines.catalog import builtin_machines
from machines.engine import Engine

SCHEDULES = "schedules"
FOLDER = Path(__file__).parent / "definitions"


def publish(engine: Engine) -> None:
    builtin_machines.publish(engine, builtin_machines.definition(FOLDER, SCHEDULES))
