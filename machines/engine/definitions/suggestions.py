"""`did you mean "Active"?`"""

from __future__ import annotations

import difflib
from collections.abc import Collection

from .path import quote

# Comparing names is slow: a document with more mistakes, or more names, than this gets no hints for the rest.
_MAX_LOOKUPS = 200
_MAX_KNOWN = 2000


class Suggestions:
    """Finds the known name nearest to a wrong one; remembers what it found."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, frozenset[str]], str] = {}

    def hint(self, name: str, known: Collection[str]) -> str:
        if len(known) > _MAX_KNOWN:
            return ""
        key = (name, frozenset(known))
        if key not in self._found:
            if len(self._found) >= _MAX_LOOKUPS:
                return ""
            self._found[key] = _nearest(*key)
        return self._found[key]


def _nearest(name: str, known: frozenset[str]) -> str:
    near = sorted(other for other in known if abs(len(other) - len(name)) <= 3)
    same = [other for other in near if other.lower() == name.lower()]
    best = same or difflib.get_close_matches(name, near, n=1, cutoff=0.6)
    return f"did you mean {quote(best[0])}?" if best else ""
