"""The jobs that wait in a worker for a thread or the event loop."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable

from machines.worker.registry import Handler

from .bundles import Bundle, Unit

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

    def put(self, works: Iterable[Work]) -> None:
        with self._lock:
            for work in works:
                priority, group = _find_place(work[1])
                if (groups := self._priorities.get(priority)) is None:
                    groups = self._priorities[priority] = {}
                if (waiting := groups.get(group)) is None:
                    waiting = groups[group] = deque()
                waiting.append(work)
                self._count += 1

    def pop(self) -> Work:
        """Remove and return the next one. Raises IndexError when there is none."""
        with self._lock:
            priority = next(iter(self._priorities), 0)
            if len(self._priorities) > 1:
                priority = (min if self._popped % AGED == AGED - 1 else max)(self._priorities)
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
        waiting = groups[group]
        work = waiting.pop() if last else waiting.popleft()
        if not waiting:
            del groups[group]
            if not groups:
                del self._priorities[priority]
        elif len(groups) > 1:
            groups[group] = groups.pop(group)  # to the end of the turns
        self._count -= 1
        return work


def _find_place(unit: Unit) -> tuple[int, str]:
    """Return the priority and the group of a job, or of jobs that run together."""
    if isinstance(unit, Bundle):
        return max(job.taken.priority for job in unit.jobs), unit.jobs[0].taken.group
    return unit.taken.priority, unit.taken.group
