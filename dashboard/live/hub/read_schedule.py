"""Decides when a partition that sent a pulse may be read.

A step rings at most once in 50 ms; the steps of the next 50 ms are silent. A read after they are over
has every step since the ring, and a step after the read rings anew. So each ring asks for a read ``settle``
later, and a ring that comes while a read is already due asks for another one after it.
"""

from __future__ import annotations


class ReadSchedule:
    """Due times by partition root, on one monotonic clock that the caller brings (seconds)."""

    def __init__(self, settle: float) -> None:
        self._settle = settle
        self._due: dict[str, tuple[float, float]] = {}  # root -> the next read, and the last one asked for

    def ring(self, root: str, now: float) -> None:
        due = now + self._settle
        first, _ = self._due.get(root, (due, due))
        self._due[root] = (first, due)

    def next(self) -> float | None:
        """When the next read is due; None while everything is quiet."""
        return min((first for first, _ in self._due.values()), default=None)

    def take(self, now: float) -> set[str]:
        """The roots to read now. Those that rang again in the meantime stay on."""
        ripe = {root for root, (first, _) in self._due.items() if first <= now}
        for root in ripe:
            _, last = self._due.pop(root)
            if last > now:
                self._due[root] = (last, last)
        return ripe

    def clear(self) -> None:
        self._due.clear()
