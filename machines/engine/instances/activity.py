"""How many instances moved on a day.

They are counted from the indexes of states, outside the steps, which that does not slow down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from machines.engine.connection.calls import Caller, require_any
from machines.engine.connection.replies import Status
from machines.engine.jobs.wakeups import ChangeWatch
from machines.engine.publishing.catalog import Catalog

AT_ONCE = 1000  # instances that one call counts: some 2 ms
EXACT = 1000  # instances of one partition and day up to which the count is exact
KEEP = 40  # days
TOGETHER = 100  # partitions of one round trip: others have their turn in between


class Activity:
    """Reads the activity of all machines below one prefix. A partition that cannot be read leaves out its own
    figures only; EngineUnavailable is raised where no partition can be."""

    def __init__(self, caller: Caller, catalog: Catalog, changes: ChangeWatch) -> None:
        self._caller = caller
        self._catalog = catalog
        self._changes = changes
        self._left: set[str] = set()  # partitions in which more are left
        self._missed: set[str] = set()  # partitions that did not answer

    def count(self, *, most: int = AT_ONCE, now: int | None = None) -> bool:
        """Count instances that moved since the last call, in each partition up to ``most``; return whether more are
        left. One round trip.

        An instance counts on each day on which it entered a state and was still there when it was counted: an instance
        that is created and deleted in between is missed, and so is the day before where it moves again after midnight.
        Partitions that did not change since the last call of this object are left out, but for one call in an hour.
        """
        asked = (most, EXACT, KEEP, "" if now is None else now)
        roots = [each.root for machine in self._catalog.names() for each in self._catalog.find_partitions(machine)]
        changed = self._changes.find(roots) | self._left | self._missed
        chosen = [root for root in roots if now is not None or root in changed]
        self._left, self._missed = set(), set()
        for start in range(0, len(chosen), TOGETHER):
            part = chosen[start : start + TOGETHER]
            replies = self._caller.many([("sb_moved", root, asked) for root in part])
            for root, reply in zip(part, replies, strict=True):
                if not _is_ok(reply):
                    self._missed.add(root)
                elif reply[2] == 1:
                    self._left.add(root)
        return bool(self._left)

    def count_moved(
        self, machines: Iterable[str], asked: Sequence[tuple[str, int]], at: int | None = None
    ) -> list[list[Any]]:
        """Read how many instances moved: for each partition and each of ``asked``, (period, number of periods), the
        rows of ``sb_distinct_count`` with the machine and the position in ``asked`` in front.

        Partitions hold different instances, so their counts may be added up.
        """
        calls = [
            (machine, place, "sb_distinct_count", partition.moved, (period, n, "" if at is None else at, ""))
            for machine in machines
            for partition in self._catalog.find_partitions(machine)
            for place, (period, n) in enumerate(asked)
        ]
        replies = self._caller.many([call[2:] for call in calls])
        require_any(replies)
        found = []
        for (machine, place, *_), reply in zip(calls, replies, strict=True):
            if _is_ok(reply):
                found.append([machine, place, *reply[1:]])
        return found


def _is_ok(reply: Any) -> bool:
    return not isinstance(reply, Exception) and bool(reply[0] == Status.OK)
