"""Decides when a partition that sent a pulse is read.

A step rings at most once in 50 ms; the steps of the next 50 ms are silent. So each ring asks for two reads: one at
once, which has the step that rang, and one ``settle`` later, which has the silent ones. A later ring moves the second
read: its own first read has them, too, and a partition that rings all the time is read once for each ring.
"""

from __future__ import annotations


class ReadSchedule:
    """Due times by partition root, on one monotonic clock that the caller brings (seconds)."""

    def __init__(self, settle: float) -> None:
        self._settle = settle
        self._due: dict[str, tuple[float, float]] = {}  # root -> the next read, and the last one asked for

    def ring(self, root: str, now: float) -> None:
        first, _ = self._due.get(root, (now, now))
        self._due[root] = (min(first, now), now + self._settle)

    def next(self) -> float | None:
        """When the next read is due; None while everything is quiet."""
        return min((first for first, _ in self._due.values()), default=None)

    def take(self, now: float) -> set[str]:
        """The roots to read now. Those whose silent steps are not over stay on."""
        ripe = {root for root, (first, _) in self._due.items() if first <= now}
        for root in ripe:
            _, last = self._due.pop(root)
            if last > now:
                self._due[root] = (last, last)
        return ripe

    def clear(self) -> None:
        self._due.clear()
