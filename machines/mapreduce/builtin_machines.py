"""Publishes the two machines of map-reduce with the first run. A version that an operator published stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from machines.catalog import builtin_machines
from machines.engine import Engine

RUN = "map_reduce"
CHUNK = "map_reduce_chunk"
FOLDER = Path(__file__).parent / "definitions"


def definition(name: str) -> dict[str, Any]:
    return builtin_machines.definition(FOLDER, name)


def publish(engine: Engine) -> None:
    for name in (CHUNK, RUN):  # a run is of no use without the other
        builtin_machines.publish(engine, definition(name))
