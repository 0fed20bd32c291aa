"""Finds the XState version of a config: version 4 leaves and re-enters a state where version 5 stays in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from machines.engine.definitions.report import Path

FOUR = ("cond", "internal", "onEntry", "onExit", "activities", "autoForward", "predictableActionArguments")
FOUR += ("preserveActionOrder", "tsTypes", "delimiter")
FIVE = ("guard", "reenter", "output", "onSnapshot", "types", "queryLanguage")
_DATA = ("meta", "context", "params", "input", "data", "schemas", "types", "schema")


def sign_of_four(config: Any) -> Path | None:
    """Return the path of a sign of version 4; None if there is none, or if anything is of version 5."""
    signs = list(_signs(config, ()))
    if any(path[-1] in FIVE for path in signs):
        return None
    return next((path for path in signs if path[-1] in FOUR), None)


def _signs(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _signs(item, (*path, index))
    if not isinstance(value, dict):
        return
    named = bool(path) and path[-1] in ("states", "on", "after")
    for key, item in value.items():
        if not named and key in (*FOUR, *FIVE):
            yield (*path, key)
        if named or key not in _DATA:
            yield from _signs(item, (*path, key))
