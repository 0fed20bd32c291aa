"""Small definitions for tests of the catalog, the diagrams and the admin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str) -> dict[str, Any]:
    return json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))


def door(**changes: Any) -> dict[str, Any]:
    """Shut -> Open and back; ``changes`` replace top-level keys."""
    return {
        "id": "door",
        "description": "A door.",
        "initial": "Shut",
        "states": {"Shut": {"on": {"open": "Open"}}, "Open": {"on": {"shut": "Shut"}}},
    } | changes


def wider_door(**changes: Any) -> dict[str, Any]:
    """The door with a third state: another program under the same name."""
    states = {
        "Shut": {"on": {"open": "Open"}},
        "Open": {"on": {"shut": "Shut", "lift": "Off"}},
        "Off": {"type": "final"},
    }
    return door(states=states) | changes


BROKEN = {
    "id": "door",
    "initial": "Shut",
    "states": {"Shut": {"on": {"open": "Opne"}}, "Open": {"on": {"shut": {"target": "Shut", "guard": "lambda: 1"}}}},
}
"""Two errors: a misspelt target and a guard that is no expression."""
