"""The two machines come with the first run: an operator's own version of them stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from machines.engine import Engine
from machines.engine.errors import UnknownMachine

RUN = "map_reduce"
CHUNK = "map_reduce_chunk"
FOLDER = Path(__file__).parent / "definitions"


def definition(name: str) -> dict[str, Any]:
    """As it is shipped; ``meta.release`` counts up with each change that runs depend on."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def publish(engine: Engine) -> None:
    """Publish both machines where they are missing, or were shipped by an older release."""
    for name in (CHUNK, RUN):  # a run is of no use without the other
        shipped = definition(name)
        if _release(_published(engine, name)) < shipped["meta"]["release"]:
            engine.publish(shipped)


def _published(engine: Engine, name: str) -> dict[str, Any]:
    try:
        return engine.definition(name)
    except UnknownMachine:
        return {}


def _release(definition: dict[str, Any]) -> int:
    meta = definition.get("meta")
    release = meta.get("release") if isinstance(meta, dict) else None
    if isinstance(release, int):
        return release
    return 1 if definition else 0
