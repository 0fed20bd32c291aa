"""A set of instance ids that takes 10 to 27 bytes for each, so that a million of them cost a process some 16 MB."""

from __future__ import annotations

import sys
from array import array

_MASK = 2**64 - 1
_FIRST = 1024  # places at the beginning; a power of two


class IdSet:
    """Remembers ids by a hash of 64 bits that differs from process to process. Of a million ids, two have the same hash
    once in 37 million sets; the second one then counts as seen."""

    def __init__(self) -> None:
        self._places = array("Q", bytes(8 * _FIRST))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def size(self) -> int:
        """Return the bytes that the set takes."""
        return sys.getsizeof(self._places)

    def add(self, id: str) -> bool:
        """Add an id; return False when it was there."""
        places = self._places
        mask = len(places) - 1
        value = hash(id) & _MASK or 1
        at = value & mask
        while held := places[at]:
            if held == value:
                return False
            at = (at + 1) & mask
        places[at] = value
        self._count += 1
        if self._count * 5 > mask * 4:
            self._grow()
        return True

    def __contains__(self, id: str) -> bool:
        places = self._places
        mask = len(places) - 1
        value = hash(id) & _MASK or 1
        at = value & mask
        while held := places[at]:
            if held == value:
                return True
            at = (at + 1) & mask
        return False

    def _grow(self) -> None:
        before, size = self._places, 2 * len(self._places)
        places, mask = array("Q", bytes(8 * size)), size - 1
        for value in before:
            if value:
                at = value & mask
                while places[at]:
                    at = (at + 1) & mask
                places[at] = value
        self._places = places
