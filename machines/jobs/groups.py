"""Reads the groups of a queue: how many jobs of each wait and run, since when, and which limits they have.

Up to ``MOST`` ready jobs are all read. Of more, the first held ones are read, and runs of neighbours at even distances:
the order of a queue mixes its groups, so the deep ones are found, and counts are estimates.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from machines.audit.redaction import redactor_if
from machines.connections import get_engine
from machines.engine import Engine, EngineUnavailable, Pause
from machines.engine.jobs.reading import parse_plain_job
from machines.engine.keys import Partition
from machines.engine.rates import QueueRate
from machines.engine.storage import Storage, read_pairs
from machines.people.actor import Actor

MOST = 10_000  # ready jobs that one look reads, over all partitions
RUN = 250  # jobs of one run
HELD = 2**47  # scores of held jobs begin here (group_limits.lua)
MAX_RUNNING = 2_000  # leased jobs that one look reads, of each partition
AT_ONCE = 1_000  # jobs of one round trip
RECENT = 60_000  # ms
FIELDS = ("group", "due", "weight", "created")
Order = Literal["depth", "age", "rate"]


@dataclass(slots=True)
class GroupFigures:
    """One group of a queue; ``name`` "" for the jobs without a group.

    ``waiting``: ready jobs; ``recent``: those of them that were enqueued within the last minute; ``oldest``: since when
    the first of them waits, ms, 0 for none. ``concurrency``, ``rate``: the limits in force, None and "" for none;
    ``is_own``: whether the group has limits or a pause of its own.
    """

    name: str
    waiting: int = 0
    running: int = 0
    recent: int = 0
    oldest: int = 0
    weight: float = 1
    concurrency: int | None = None
    rate: str = ""
    paused: Pause | None = None
    is_own: bool = False

    @property
    def place(self) -> str:
        """Return the place where its jobs are found."""
        return "leased" if self.running and not self.waiting else "ready"

    @property
    def limits(self) -> str:
        """Describe why jobs of the group may have to wait; "" where it has no limits."""
        words = [f"{self.concurrency:,} at a time"] if self.concurrency is not None else []
        return " and ".join(["paused"] if self.paused else words + ([self.rate] if self.rate else []))


class GroupList(NamedTuple):
    """``looked``: of ``ready`` jobs; where it is less, counts are estimates. ``hidden``: names are not shown."""

    items: list[GroupFigures]
    looked: int
    ready: int
    hidden: bool = False

    @property
    def is_sample(self) -> bool:
        return self.looked < self.ready


def list_groups(actor: Actor, machine: str, queue: str, *, order: Order = "depth") -> GroupList:
    """List the groups of a queue, by depth, by the age of the oldest job, or by recent jobs. Names that the actor may
    not see are joined to one. Raises Forbidden, UnknownMachine, EngineUnavailable."""
    actor.demand("view", machine)
    engine, redactor = get_engine(), redactor_if(actor.may("reveal", machine), machine)
    found = read_groups(engine, machine, queue)
    if hidden := redactor.redact_text("group") != "group":
        joined = _join(replace(one, name=redactor.redact_text(one.name)) for one in found.items)
        found = found._replace(items=list(joined), hidden=hidden)
    return found._replace(items=sorted(found.items, key=ORDERS[order]))


ORDERS: dict[str, Any] = {
    "depth": lambda one: (-one.waiting, one.oldest or float("inf"), one.name),
    "age": lambda one: (one.oldest or float("inf"), -one.waiting, one.name),
    "rate": lambda one: (-one.recent, -one.waiting, one.name),
}


def read_groups(engine: Engine, machine: str, queue: str, *, most: int = MOST) -> GroupList:
    """Read the groups of a queue, in no order, among ``most`` of its ready jobs. Partitions that do not answer are left
    out."""
    partitions, storage = engine.retirement().partitions(machine), Storage(engine.client)
    found: dict[str, GroupFigures] = {}
    counts = {each: count for each in partitions if (count := _count_ready(storage, each.ready(queue))) is not None}
    now, ready, looked = engine.read_clock(), sum(counts.values()), 0
    for partition, count in counts.items():
        ids = _list_ready(storage, partition.ready(queue), count, most * count // ready if ready > most else count)
        looked += len(ids)
        for group, due, weight, created in _read_jobs(storage, partition, ids):
            one = found.setdefault(group or "", GroupFigures(group or ""))
            one.waiting += 1
            since = int(due or created or now)
            one.oldest = min(one.oldest or since, since)
            one.recent += int(created or 0) > now - RECENT
            one.weight = float(weight or 1)
        leased = storage.command("ZRANGE", partition.leased(queue), 0, MAX_RUNNING - 1)
        for group, *_ in _read_jobs(storage, partition, leased):
            found.setdefault(group or "", GroupFigures(group or "")).running += 1
    if 0 < looked < ready:
        for one in found.values():
            one.waiting, one.recent = round(one.waiting * ready / looked), round(one.recent * ready / looked)
    for partition in list(counts)[:1]:
        _read_limits(storage, partition, queue, found)
    return GroupList(list(found.values()), min(looked, ready), ready)


def _count_ready(storage: Storage, key: str) -> int | None:
    """Count the ready jobs of a partition; None where it does not answer."""
    try:
        return int(storage.command("ZCARD", key))
    except EngineUnavailable:
        return None


def _list_ready(storage: Storage, key: str, count: int, most: int) -> list[str]:
    """List ready jobs: all, or the first held ones and runs at even distances."""
    runs = max(1, -(-most // RUN))
    starts = [(number * count // runs) for number in range(runs)] if most < count else range(0, count, RUN)
    words: list[tuple[Any, ...]] = [(start, start + RUN - 1) for start in starts]
    if most < count:
        words.append((HELD, "+inf", "BYSCORE", "LIMIT", 0, RUN))
    answers = storage.commands([(key, ("ZRANGE", key, *each)) for each in words])
    return list(dict.fromkeys(id for ids in answers for id in ids))


def _read_jobs(storage: Storage, partition: Partition, ids: list[str]) -> Iterator[tuple[str | None, ...]]:
    """Read group, due, weight and creation of the jobs that are still there. A plain job has the creation alone, or
    since when it is leased."""
    for first in range(0, len(ids), AT_ONCE):
        names = [partition.job(id) for id in ids[first : first + AT_ONCE]]
        (texts,) = storage.commands([(names[0], ("MGET", *names))])
        plain = [parse_plain_job(text) for text in texts if text is not None]
        yield from ((None, None, None, since) for _, since in plain if since)
        hashes = [key for key, text in zip(names, texts, strict=True) if text is None]
        rows = storage.commands([(key, ("HMGET", key, *FIELDS)) for key in hashes])
        yield from (row for row in rows if row[-1])


def _read_limits(storage: Storage, partition: Partition, queue: str, found: dict[str, GroupFigures]) -> None:
    """Add the limits in force, and groups without jobs that have limits of their own."""
    rules, limits = partition.rules(queue), partition.limits(queue)
    text, own = storage.commands([(rules, ("HGET", rules, "groups")), (limits, ("HGETALL", limits))])
    declared = _decode(text)
    rows = {name: _decode(row) for name, row in read_pairs(own).items()}
    for name in rows:
        found.setdefault(name, GroupFigures(name))
    for name, one in found.items():
        row = rows.get(name, {})
        rule = declared | row if name else {}  # jobs without a group have no limits of groups
        one.is_own = bool(row)
        one.concurrency = int(rule.get("concurrency") or 0) or None
        one.rate = str(QueueRate.decode(rule.get("rate")) or "")
        if "paused" in row:
            one.paused = Pause(int(row["paused"]), row.get("actor", ""), row.get("reason", ""))


def _decode(text: str | None) -> dict[str, Any]:
    found = json.loads(text) if text else {}
    return found if isinstance(found, dict) else {}


def _join(groups: Iterable[GroupFigures]) -> Iterator[GroupFigures]:
    """Join groups of one name."""
    joined: dict[str, GroupFigures] = {}
    for one in groups:
        held = joined.setdefault(one.name, GroupFigures(one.name))
        for name in ("waiting", "running", "recent"):
            setattr(held, name, getattr(held, name) + getattr(one, name))
        held.oldest = min(filter(None, (held.oldest, one.oldest)), default=0)
    return iter(joined.values())


def find_stalled(groups: Iterable[GroupFigures], before: int) -> list[GroupFigures]:
    """Return the groups with limits whose first job waits since before a time in ms, the oldest first."""
    return sorted((one for one in groups if 0 < one.oldest < before and one.limits), key=attrgetter("oldest"))
