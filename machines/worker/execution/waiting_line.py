"""The jobs that wait in a worker for a thread or the event loop."""

from __future__ import annotations

import threading
from collections import deque

from machines.worker.registry import Handler

from .bundles import Unit, list_jobs

Work = tuple[Handler, Unit]


class WaitingLine:
    """Groups take turns, and the jobs of each keep their order: what was taken ahead for one holds up no other."""

    def __init__(self) -> None:
        self._groups: dict[str, deque[Work]] = {}  # in the order of their turns; none is empty
        self._count = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self._count

    def put(self, work: Work) -> None:
        group = list_jobs(work[1])[0].taken.group
        with self._lock:
            self._groups.setdefault(group, deque()).append(work)
            self._count += 1

    def pop(self) -> Work:
        """Remove and return the next one. Raises IndexError when there is none."""
        with self._lock:
            return self._pop(next(iter(self._groups), ""), last=False)

    def pop_last(self) -> Work:
        """Remove and return the last one of the group with the most. Raises IndexError when there is none."""
        with self._lock:
            return self._pop(max(self._groups, key=lambda group: len(self._groups[group]), default=""), last=True)

    def _pop(self, group: str, *, last: bool) -> Work:
        waiting = self._groups.pop(group, None)
        if not waiting:
            raise IndexError("nothing waits")
        work = waiting.pop() if last else waiting.popleft()
        if waiting:
            self._groups[group] = waiting
        self._count -= 1
        return work
