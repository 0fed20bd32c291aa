"""Finds names that are valid and still free."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from machines.engine import limits

_NOT_A_FIELD = re.compile(r"[^A-Za-z0-9_]+")


def field_name(text: str, otherwise: str) -> str:
    """Return the text if it is a valid field name, else a similar name; ``otherwise`` if no character is left."""
    if limits.check_field_name(text) is None:
        return text
    name = _NOT_A_FIELD.sub("_", text).lstrip("_0123456789")[: limits.MAX_FIELD_NAME - 8] or otherwise
    return name if limits.check_field_name(name) is None else f"{name}_"


class Names:
    """Names that are taken. Each stem continues its own numbers, so many names of one stem do not take longer."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._last: Counter[str] = Counter()

    def free(self, stem: str, first: int = 1) -> str:
        """Take and return the first free name of ``stem1``, ``stem2``, ..."""
        number = self._last[stem] + 1 if stem in self._last else first
        while f"{stem}{number}" in self._taken:
            number += 1
        self._last[stem] = number
        self._taken.add(f"{stem}{number}")
        return f"{stem}{number}"

    def take(self, name: str) -> str:
        """Take the name and return it, or ``name_2``, ``name_3``, ... if it is taken."""
        if name in self._taken:
            return self.free(f"{name}_", first=2)
        self._taken.add(name)
        return name
