"""The jobs that wait in a worker for a thread or the event loop."""

from __future__ import annotations

import threading
from collections import deque

from machines.worker.registry import Handler

from .bundles import Unit, list_jobs

Work = tuple[Handler, Unit]
AGED = 20  # each twentieth job that is popped comes from the lowest priority, so that none waits for ever


class WaitingLine:
    """The highest priority goes first. Within it groups take turns, whatever their weights, and the jobs of each keep
    their order: what was taken ahead for one holds up no other."""

    def __init__(self) -> None:
        self._priorities: dict[int, dict[str, deque[Work]]] = {}  # groups in the order of their turns; nothing is empty
        self._count = self._popped = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self._count

    def put(self, work: Work) -> None:
        jobs = [job.taken for job in list_jobs(work[1])]
        priority = max(job.priority for job in jobs)
        with self._lock:
            self._priorities.setdefault(priority, {}).setdefault(jobs[0].group, deque()).append(work)
            self._count += 1

    def pop(self) -> Work:
        """Remove and return the next one. Raises IndexError when there is none."""
        with self._lock:
            is_aged = self._popped % AGED == AGED - 1
            priority = (min if is_aged else max)(self._priorities, default=0)
            work = self._pop(priority, next(iter(self._priorities.get(priority, ())), ""), last=False)
            self._popped += 1
            return work

    def pop_last(self) -> Work:
        """Remove and return the last one of the lowest priority's group with the most. Raises IndexError when there is
        none."""
        with self._lock:
            priority = min(self._priorities, default=0)
            groups = self._priorities.get(priority, {})
            return self._pop(priority, max(groups, key=lambda group: len(groups[group]), default=""), last=True)

    def _pop(self, priority: int, group: str, *, last: bool) -> Work:
        groups = self._priorities.get(priority)
        if not groups:
            raise IndexError("nothing waits")
        waiting = groups.pop(group)
        work = waiting.pop() if last else waiting.popleft()
        if waiting:
            groups[group] = waiting
        elif not groups:
            del self._priorities[priority]
        self._count -= 1
        return work
