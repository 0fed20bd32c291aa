"""Reads the figures of a machine's versions, and counts instances that are older than the counters."""

import json
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

from machines.engine.connection.calls import Caller, keep_available
from machines.engine.connection.replies import require_ok
from machines.engine.errors import EngineUnavailable
from machines.engine.keys import Partition
from machines.engine.publishing.catalog import Catalog
from machines.engine.publishing.machine_meta import PolicyTexts
from machines.engine.records import PartialList

from .records import StateTime, VersionFigures, read_version, read_withdrawn

COUNTED_AT_ONCE = 20_000  # instances that a reader counts by itself; workers count any number
TOGETHER = 500  # ids of one call
QUIET_PASSES = 3  # over all indexes, without a new instance: then there are no others
COUNTERS = {"created": "created", "refusals": "refused", "dead": "dead", "failed": "failed"}


class FigureReader:
    """Reads the counters of versions from all partitions of a machine."""

    def __init__(self, caller: Caller, catalog: Catalog) -> None:
        self._caller = caller
        self._catalog = catalog

    def read(
        self, machine: str, sample: int = 0, *, count: bool = True, partial: bool = False
    ) -> PartialList[VersionFigures]:
        """Return the figures of all published versions in order. ``sample``: instances to look at in each state of
        each partition for the times; ``count``: count instances that are older than the counters, if there are few;
        ``partial``: the figures of the partitions that answer, with the roots of the others as ``missing``. Raises
        UnknownMachine; EngineUnavailable where a partition does not answer, with ``partial`` where none does."""
        parts, missing = self._ask(machine, sample, partial)
        total = sum(int(part["total"]) for part in parts)
        if count and not missing and total <= COUNTED_AT_ONCE and not all(part["exact"] for part in parts):
            self.count_instances(machine)
            parts, missing = self._ask(machine, sample, partial)
        policy = self._catalog.policy(machine)
        numbers = self._catalog.versions(machine)
        return PartialList([_merge(number, parts, _find_role(number, policy)) for number in numbers], missing=missing)

    def _ask(self, machine: str, sample: int, partial: bool) -> tuple[list[dict[str, Any]], list[str]]:
        """Return what the partitions answer, and the roots of those that do not."""
        found, missing = [], []
        calls = [("sb_versions", p.root, (sample, "")) for p in self._catalog.partitions(machine)]
        replies = keep_available(self._caller.many(calls))
        for (_, root, _), reply in zip(calls, replies, strict=True):
            if isinstance(reply, EngineUnavailable):
                if not partial:
                    raise reply
                missing.append(root)
                continue
            require_ok("sb_versions", reply, machine)
            found.append(json.loads(reply[1]))
        return found, missing

    def count_instances(self, machine: str) -> int:
        """Count the instances of each version that are older than the counters; return how many were new. Goes on
        where another process has stopped; instances come, go and move meanwhile."""
        return sum(self._count_partition(partition) for partition in self._catalog.partitions(machine))

    def _count_partition(self, partition: Partition) -> int:
        total = quiet = 0
        while not self._count(partition, "force" if quiet >= QUIET_PASSES else "finish", ())[1]:
            fresh = 0
            for state in self._caller.command("SMEMBERS", partition.states):
                fresh += self._count_state(partition, str(state))
            quiet = 0 if fresh else quiet + 1
            total += fresh
        return total

    def _count_state(self, partition: Partition, state: str) -> int:
        fresh, cursor = 0, "0"
        while True:
            cursor, found = self._caller.command("ZSCAN", partition.state(state), cursor, "COUNT", TOGETHER)
            ids = [str(id) for id, _ in found]
            for start in range(0, len(ids), TOGETHER):
                fresh += self._count(partition, "count", ids[start : start + TOGETHER])[0]
            if int(cursor) == 0:
                return fresh

    def _count(self, partition: Partition, action: str, ids: Sequence[str]) -> tuple[int, bool]:
        reply = require_ok("sb_version_count", self._caller.call("sb_version_count", partition.root, action, *ids))
        return int(reply[1]), str(reply[2]) == "1"


def _find_role(number: int, policy: PolicyTexts) -> str:
    if number == read_version(policy.current):
        return "current"
    if policy.rollout and number == read_version(policy.rollout.partition(" ")[2]):
        return "rollout"
    return "withdrawn" if number in read_withdrawn(policy) else ""


def _merge(number: int, parts: Sequence[dict[str, Any]], role: str) -> VersionFigures:
    """Make the figures of a version of those of the partitions."""
    counts: Counter[str] = Counter()
    flow: Counter[str] = Counter()
    for part in parts:
        counts.update(dict((part["versions"] or {}).get(str(number)) or {}))
        prefix = f"{number}:"
        flow.update({e[len(prefix) :]: n for e, n in dict(part["flow"] or {}).items() if e.startswith(prefix)})
    return VersionFigures(
        version=number,
        instances=counts["instances"],
        **{name: counts[field] for name, field in COUNTERS.items()},
        steps=sum(flow.values()),
        flow=dict(flow),
        times=_merge_times(number, parts),
        role=role,
        exact=all(part["exact"] for part in parts),
    )


def _merge_times(number: int, parts: Sequence[dict[str, Any]]) -> dict[str, StateTime]:
    ages: dict[str, list[int]] = {}
    sampled: set[str] = set()
    for part in parts:
        for state, row in dict(part["times"] or {}).items():
            ages.setdefault(state, []).extend(dict(row["ages"] or {}).get(str(number), ()))
            if row["looked"] < row["count"]:
                sampled.add(state)
    return {
        state: StateTime(len(found), round(statistics.median(found)), state not in sampled)
        for state, found in sorted(ages.items())
        if found
    }
