"""Reads the figures of a machine's versions."""

import json
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

from machines.engine.connection.calls import Caller, keep_available
from machines.engine.connection.replies import require_ok
from machines.engine.errors import EngineUnavailable
from machines.engine.publishing.catalog import Catalog
from machines.engine.publishing.machine_meta import PolicyTexts
from machines.engine.records import PartialList

from .records import StateTime, VersionFigures, read_version, read_withdrawn

COUNTERS = {"created": "created", "refusals": "refused", "dead": "dead", "failed": "failed"}


class FigureReader:
    """Reads the counters of versions from all partitions of a machine."""

    def __init__(self, caller: Caller, catalog: Catalog) -> None:
        self._caller = caller
        self._catalog = catalog

    def read(self, machine: str, sample: int = 0, *, partial: bool = False) -> PartialList[VersionFigures]:
        """Return the figures of all published versions in order. ``sample``: instances to look at in each state of
        each partition for the times; ``partial``: the figures of the partitions that answer, with the roots of the
        others as ``missing``. Raises UnknownMachine; EngineUnavailable where a partition does not answer, with
        ``partial`` where none does."""
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
