"""Publishes the bulk machine with the first bulk action. A version that an operator published stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from machines.catalog import builtin_machines
from machines.engine import Engine

BULK = "bulk"
FOLDER = Path(__file__).parent / "definitions"


def definition() -> dict[str, Any]:
    return builtin_machines.definition(FOLDER, BULK)


def publish(engine: Engine) -> None:
    builtin_machines.publish(engine, definition())
