"""One input as plain JSON, short enough to be read: what is large in it is written as how it is made."""

from __future__ import annotations

import random
from typing import Any

Case = dict[str, Any]

TIMES, MANY, DEEP, JOINED = "$times", "$many", "$deep", "$joined"


def source(kind: str, seed: int, index: int) -> random.Random:
    """What input number ``index`` is drawn from. The same on every machine, whatever was drawn before."""
    return random.Random(f"{seed}/{kind}/{index}")


def times(part: str | list[Any], count: int) -> dict[str, Any]:
    """The text, or what is in the list, so many times."""
    return {TIMES: [part, count]}


def many(prefix: str, count: int, value: Any) -> dict[str, Any]:
    """An object of so many keys with that value."""
    return {MANY: [prefix, count, value]}


def deep(count: int, value: Any) -> dict[str, Any]:
    """So many lists inside one another."""
    return {DEEP: [count, value]}


def joined(*parts: Any) -> dict[str, Any]:
    """A text of several parts."""
    return {JOINED: list(parts)}


def expand(value: Any) -> Any:
    """The value itself."""
    if isinstance(value, list):
        return [expand(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((name, given),) = value.items()
        if name in MAKERS and isinstance(given, list):
            return MAKERS[name](*given)
    return {key: expand(item) for key, item in value.items()}


def _times(part: Any, count: int) -> Any:
    return part * count if isinstance(part, str) else [expand(item) for item in part] * count


def _many(prefix: str, count: int, value: Any) -> dict[str, Any]:
    return dict.fromkeys((f"{prefix}{number}" for number in range(count)), expand(value))


def _deep(count: int, value: Any) -> Any:
    for _ in range(count):
        value = [value]
    return value


def _joined(*parts: Any) -> str:
    return "".join(expand(part) for part in parts)


MAKERS = {TIMES: _times, MANY: _many, DEEP: _deep, JOINED: _joined}
