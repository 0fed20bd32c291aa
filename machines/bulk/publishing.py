"""The machine comes with the first bulk: an operator's own version of it stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from machines.engine import Engine
from machines.engine.errors import UnknownMachine

BULK = "bulk"
FILE = Path(__file__).parent / "definitions" / f"{BULK}.json"


def definition() -> dict[str, Any]:
    """As it is shipped; ``meta.release`` counts up with each change that bulks depend on."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def publish(engine: Engine) -> None:
    """Publish the machine where it is missing, or was shipped by an older release."""
    shipped = definition()
    if _release(engine) < shipped["meta"]["release"]:
        engine.publish(shipped)


def _release(engine: Engine) -> int:
    try:
        meta = engine.definition(BULK).get("meta")
    except UnknownMachine:
        return 0
    release = meta.get("release") if isinstance(meta, dict) else None
    return release if isinstance(release, int) else 1
