"""Versions of machines for tests of plans and comparisons."""

from __future__ import annotations

import copy
from typing import Any

from machines.engine.versions.content import VersionContent, read_content

ORDER: dict[str, Any] = {
    "id": "order",
    "initial": "New",
    "context": {"total": 0, "note": "", "paid": False, "code": 7},
    "states": {
        "New": {"on": {"pay": "Paying", "cancel": "Cancelled"}, "after": {"1h": "Cancelled"}},
        "Paying": {
            "invoke": {"src": "charge", "onDone": "Paid", "onError": "New"},
            "after": {"30s": "New", "2m": "Cancelled"},
        },
        "Paid": {"on": {"ship": "Shipping"}},
        "Shipping": {
            "initial": "packing",
            "states": {
                "packing": {"on": {"packed": "moving"}},
                "moving": {"on": {"arrived": "#Done"}},
                "past": {"type": "history"},
            },
            "on": {"hold": "Held"},
        },
        "Held": {"on": {"go": "past"}},
        "Done": {"type": "final"},
        "Cancelled": {"type": "final"},
    },
}


def change(definition: dict[str, Any] | None = None, **parts: Any) -> dict[str, Any]:
    """Return a copy of a definition with other values at paths: ``states__New__on={}``; ``None`` removes."""
    changed = copy.deepcopy(definition or ORDER)
    for path, value in parts.items():
        *way, last = path.split("__")
        at = changed
        for key in way:
            at = at[key]
        if value is None:
            at.pop(last, None)
        else:
            at[last] = value
    return changed


def rename(definition: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """Return a copy in which a top-level state, and all that leads to it, has another name, in its old place."""

    def swap(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: swap(item) for key, item in value.items()}
        if isinstance(value, list):
            return [swap(item) for item in value]
        return new if value == old else f"#{new}" if value == f"#{old}" else value

    changed = swap(copy.deepcopy(definition))
    changed["states"] = {new if key == old else key: body for key, body in changed["states"].items()}
    return changed


def read(number: int, definition: dict[str, Any]) -> VersionContent:
    """Compile a version; its digest is its number twelve digits long."""
    return read_content(number, f"{number:012d}", definition)
