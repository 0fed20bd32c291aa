"""Which instances moved, and for how long they have stood: read from the sets of states, and never in a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from machines.engine.connection.calls import Caller, translate
from machines.engine.connection.replies import Status
from machines.engine.errors import EngineUnavailable, LookupFailed, SignalboxError
from machines.engine.publishing.catalog import Catalog

AT_ONCE = 1000  # instances of one call: some 2 ms
EXACT = 1000  # instances up to which a day of one partition is counted exactly
KEEP = 40  # days


class Activity:
    """All machines below one prefix. What cannot be read costs its own figures and no others."""

    def __init__(self, caller: Caller, catalog: Catalog) -> None:
        self._caller = caller
        self._catalog = catalog

    def count(self, *, most: int = AT_ONCE, now: int | None = None) -> bool:
        """Count what moved since the last time, of each partition up to ``most``; whether there is more. One round
        trip.

        An instance counts on each day on which it entered a state and was still there when somebody looked: what comes
        and is deleted in between is missed, and so is the day before where it moves again after midnight.
        """
        asked = (most, EXACT, KEEP, "" if now is None else now)
        answers = self._all(self._catalog.machines(), "sb_moved", asked)
        return any(reply[2] == 1 for _, reply in answers)

    def moved(
        self, machines: Iterable[str], asked: Sequence[tuple[str, int]], at: int | None = None
    ) -> list[list[Any]]:
        """How many moved: for each partition of the machines and each of ``asked``, which are periods and how many of
        them, the rows ``sb_distinct_count`` answers, with the machine and the place in ``asked`` in front.

        Partitions hold different instances: their counts may be added up.
        """
        calls = [
            (machine, place, "sb_distinct_count", partition.moved, (period, n, "" if at is None else at, ""))
            for machine in machines
            for partition in self._partitions(machine)
            for place, (period, n) in enumerate(asked)
        ]
        replies = self._caller.many([call[2:] for call in calls])
        found = []
        for (machine, place, *_), reply in zip(calls, replies, strict=True):
            if _is_read(reply):
                found.append([machine, place, *reply[1:]])
        return found

    def ages(self, machine: str, states: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
        """State -> for each partition in which instances stand in it how many, and since when the one in the middle
        has, ms."""
        found: dict[str, list[tuple[int, int]]] = {}
        for _, reply in self._all([machine], "sb_ages", states) if states else ():
            for state, count, middle in zip(states, reply[1::2], reply[2::2], strict=True):
                if count:
                    found.setdefault(state, []).append((int(count), int(float(middle))))
        return found

    def _all(self, machines: Iterable[str], function: str, words: Sequence[Any]) -> list[tuple[str, list[Any]]]:
        """The answers of every partition that can be read."""
        roots = [(machine, each.root) for machine in machines for each in self._partitions(machine)]
        replies = self._caller.many([(function, root, words) for _, root in roots])
        return [(machine, reply) for (machine, _), reply in zip(roots, replies, strict=True) if _is_read(reply)]

    def _partitions(self, machine: str) -> Sequence[Any]:
        try:
            return self._catalog.partitions(machine)
        except LookupFailed:  # it went this very moment
            return ()


def _is_read(reply: Any) -> bool:
    """Raises EngineUnavailable."""
    if isinstance(reply, Exception):
        try:
            translate(reply)
        except EngineUnavailable:
            raise
        except SignalboxError:
            return False
    return bool(reply[0] == Status.OK)


def merge_medians(parts: Mapping[str, list[tuple[int, int]]]) -> dict[str, int]:
    """State -> ms since which half of its instances have stood there: of several partitions the one in the middle by
    weight, which for ids that are spread by their hash is close to the true one."""
    return {state: _middle(sorted(each, key=lambda part: part[1])) for state, each in parts.items()}


def _middle(parts: list[tuple[int, int]]) -> int:
    half, seen = sum(count for count, _ in parts) / 2, 0
    for count, at in parts:
        seen += count
        if seen >= half:
            return at
    raise ValueError("there are no instances")
