"""The values that an erasure looks for, in each way they are written: plain, and inside JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MASK = "•••"
LEAST = 4
"""Characters of a value that is looked for everywhere: a shorter one would be found in what others wrote."""
LEAST_DIGITS = 7
"""The same of a number."""


@dataclass(frozen=True, slots=True)
class SearchValues:
    """``texts``: all ways in which the values are written, the longest first."""

    texts: tuple[str, ...]

    @classmethod
    def of(cls, values: Iterable[Any]) -> SearchValues:
        """Take the values that are long enough to be looked for."""
        found: set[str] = set()
        for value in values:
            text = str(value)
            if is_telling(value):
                found |= {text, *(json.dumps(text, ensure_ascii=plain)[1:-1] for plain in (True, False))}
        return cls(tuple(sorted(found, key=lambda text: (-len(text), text))))

    def __bool__(self) -> bool:
        return bool(self.texts)

    def __add__(self, other: SearchValues) -> SearchValues:
        return SearchValues(tuple(sorted({*self.texts, *other.texts}, key=lambda text: (-len(text), text))))

    def are_in(self, text: str | bytes) -> bool:
        if isinstance(text, bytes):
            return any(wanted.encode() in text for wanted in self.texts)
        return any(wanted in text for wanted in self.texts)

    def mask(self, text: str, by: str = MASK) -> str:
        """Return the text with each value replaced."""
        for wanted in self.texts:
            text = text.replace(wanted, by)
        return text

    def mask_bytes(self, text: bytes) -> bytes:
        for wanted in self.texts:
            text = text.replace(wanted.encode(), MASK.encode())
        return text


def is_telling(value: Any) -> bool:
    """Tell whether a value is long enough to be looked for everywhere."""
    if isinstance(value, str):
        return len(value) >= LEAST
    return isinstance(value, int | float) and not isinstance(value, bool) and len(str(value)) >= LEAST_DIGITS


def list_named(value: Any, names: frozenset[str]) -> list[Any]:
    """List the leaves of what stands under one of these names, at any depth."""
    if isinstance(value, Mapping):
        found = []
        for name, inner in value.items():
            found += _list_leaves(inner) if name in names else list_named(inner, names)
        return found
    if isinstance(value, list | tuple):
        return [leaf for inner in value for leaf in list_named(inner, names)]
    return []


def _list_leaves(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [leaf for inner in value for leaf in _list_leaves(inner)]
    return [value]
