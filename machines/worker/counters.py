"""Counts the outcomes of this worker's jobs."""

from __future__ import annotations

import threading
from collections import Counter


class Counters:
    """Outcomes: completed, delayed and dead (failed attempts), lost, missing, returned."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self._lock = threading.Lock()

    def add(self, outcome: str, count: int = 1) -> None:
        with self._lock:
            self.outcomes[outcome] += count

    @property
    def done(self) -> int:
        return self.outcomes["completed"]

    @property
    def failed(self) -> int:
        return self.outcomes["delayed"] + self.outcomes["dead"]

    def __str__(self) -> str:
        counted = [f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items())]
        return ", ".join(counted) or "no jobs done"
