"""The background duty that lets go of what a machine need not keep: finished instances, dead jobs, log entries.

An instance is read, archived, and then removed if it is still the one that was read. Where archiving fails nothing is
removed; where the process ends in between, the next pass writes the same record again, which the archive has once.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from django.db import connection
from django.db.models import Model

from machines.alarms.models import AlarmEvent
from machines.audit import chain
from machines.audit.models import AuditEntry
from machines.catalog import builtin_machines
from machines.conf import conf
from machines.conf.database import DatabaseDuty, delete_some
from machines.conf.retention_policy import Policy, TableBound, parse_policy
from machines.conf.server_share import ServerShare, Walk
from machines.engine import Engine, errors, limits
from machines.engine.definitions.reading.machine_settings import Retention, find_retention
from machines.engine.instances.retirement import Batch, FinishedInstance, Retirement
from machines.engine.keys import Partition
from machines.insight.errors import InsightOff, StoreUnavailable
from machines.insight.statistics.models import Measurement
from machines.insight.store import get_store
from machines.instances.archive import sql
from machines.instances.archive.store import Archive, get_archive
from machines.instances.models import ArchivedInstance
from machines.webhooks.models import Delivery

log = logging.getLogger(__name__)

AT_ONCE = 2000  # rows of one statement: a transaction, and its locks, stay short
MODELS: dict[str, type[Model]] = {"statistics": Measurement, "webhooks": Delivery, "alarms": AlarmEvent}
SEAL_PAUSE = 3_600_000  # ms between two seals, while fewer rows than AT_ONCE are due
ALARMS_AGE = 90 * 86_400_000
"""ms: the age of the history of alarms where the setting does not say otherwise."""
ACTOR = "retention"
READ = 100  # instances of one read, and of one call that removes: about 1 ms of the server
READ_STEPS = 20_000  # steps that one read may bring, where histories are long
MAX_STEPS = 100_000  # steps that are gathered for one write to the archive: some 15 MB
HOLD = 3_600_000  # ms for which what is not archived waits for insight


def read_policy() -> Policy:
    """Return what ``SIGNALBOX_RETAIN`` says."""
    return parse_policy(conf.RETAIN)


def prune(now: int | None = None) -> dict[str, int]:
    """Remove rows beyond the bounds, some at a time; return how many of each table. ``now``: ms."""
    policy, now = read_policy(), int(time.time() * 1000) if now is None else now
    gone = {name: _prune_number(model, policy.table(name)) for name, model in MODELS.items()}
    gone["audit"] = _prune_audit(policy.table("audit"), now)
    alarms = policy.table("alarms").age
    gone["alarms"] += _prune_age(AlarmEvent, ALARMS_AGE if alarms is None else alarms, now)
    gone["archive"] = _prune_archive(policy.table("archive"), now)
    for name, count in gone.items():
        if count:
            log.info("retention: %d rows of %s went", count, name)
    return gone


def _prune_age(model: type[Model], age: int | None, now: int) -> int:
    if age is None:
        return 0
    return delete_some(model._default_manager.filter(at__lt=_read_time(now - age)).order_by("pk"), AT_ONCE)


def _prune_audit(bound: TableBound, now: int) -> int:
    """Remove the beginning of the hash chain, which gets a seal. Entries that wait to be chained are so before. Seals
    count as no entries, and do not go alone: each would leave another."""
    while chain.chain_waiting():
        pass
    entries = AuditEntry.objects.filter(number__gt=0).order_by("number")
    numbers = entries.values_list("number", flat=True)
    first, last = numbers.first(), numbers.last()
    if first is None or last is None:
        return 0
    seals, through = chain.find_seals(), first - 1
    if bound.most is not None:
        through = max(through, last - bound.most - seals.count())
    if bound.age is not None:
        kept = numbers.filter(at__gte=_read_time(now - bound.age)).first()
        through = max(through, last if kept is None else kept - 1)
    if through < first + AT_ONCE and seals.filter(at__range=(_read_time(now - SEAL_PAUSE), _read_time(now))).exists():
        return 0
    through = min(through, first - 1 + AT_ONCE)
    due = entries.filter(number__lte=through).exclude(action=chain.SEAL)
    return chain.remove_oldest(through) if due.exists() else 0


def _read_time(ms: int) -> datetime:
    return datetime.fromtimestamp(max(0, ms) / 1000, UTC)


def _prune_number(model: type[Model], bound: TableBound) -> int:
    if bound.most is None:
        return 0
    rows = model._default_manager.all()
    excess = rows.count() - bound.most
    return delete_some(rows.order_by("pk"), min(excess, AT_ONCE)) if excess > 0 else 0


def _prune_archive(bound: TableBound, now: int) -> int:
    """Remove archived instances by age and number. On PostgreSQL whole months go at once by age."""
    gone = 0
    if bound.age is not None:
        if connection.vendor == "postgresql":
            sql.drop_partitions(now - bound.age)
        rows = ArchivedInstance.objects.filter(finished__lt=now - bound.age)
        gone += sql.remove(rows.order_by("finished")[:AT_ONCE])
    if bound.most is not None:
        excess = ArchivedInstance.objects.count() - bound.most
        if excess > 0:
            gone += sql.remove(ArchivedInstance.objects.order_by("finished")[: min(excess, AT_ONCE)])
    return gone


@dataclass(frozen=True, slots=True)
class MachineBounds:
    """The bounds of one machine, the fields by which its archived instances can be found, and how long its histories
    may be."""

    machine: str
    retention: Retention
    index: tuple[str, ...]
    history: int = limits.DEFAULT_HISTORY

    @property
    def read(self) -> int:
        """Instances of one read."""
        return max(1, min(READ, READ_STEPS // max(1, self.history)))


class RetentionDuty(DatabaseDuty):
    """Walks over all machines and lets go of what is due, within a share of the server's time."""

    MESSAGE = "finished instances stay: the archive cannot be written: %s"

    def __init__(
        self, engine: Engine, *, pause: float = 30.0, share: ServerShare | None = None, archive: Archive | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._engine, self._pause = engine, pause
        self._share = share or ServerShare()
        self._archive = archive
        self._bounds: dict[str, tuple[str, MachineBounds]] = {}
        self._walk = Walk(clock=clock)
        self.gone = 0
        """Instances that this process has let go."""

    def look(self) -> bool:
        """Let go for about a second; return whether more is due."""
        return self._walk.go_on(self._pass)

    def pause(self) -> float:
        """Return seconds, not the same each time: workers that were started together need not look together."""
        return self._pause * random.uniform(0.8, 1.2)  # noqa: S311  spreading load, not a secret

    def _pass(self) -> Iterator[None]:
        """Make one walk over all machines; yield after each batch."""
        retirement, now = self._engine.retirement(), self._engine.emitted_logs().now()
        for bounds in self._list_bounds():
            try:
                yield from self._keep_machine(retirement, bounds, now)
            except (errors.EngineFault, errors.LookupFailed) as fault:
                log.error("retention of %s: %s", bounds.machine, fault)

    def _list_bounds(self) -> list[MachineBounds]:
        """List the machines that have bounds. A definition is read once for each version."""
        default = parse_policy(conf.RETAIN).machines
        found = []
        for machine, current in self._engine.recent_versions().items():
            held = self._bounds.get(machine)
            if held is None or held[0] != current:
                try:
                    definition = self._engine.definition(machine)
                except errors.LookupFailed:
                    continue
                index = tuple(name for name in definition.get("index") or () if isinstance(name, str))
                history = definition.get("history", limits.DEFAULT_HISTORY)
                held = current, MachineBounds(machine, find_retention(definition), index, history)
                self._bounds[machine] = held
            bounds = held[1]
            retention = bounds.retention if machine in builtin_machines.NAMES else bounds.retention.fill_from(default)
            if retention:
                found.append(replace(bounds, retention=retention))
        return found

    def _keep_machine(self, retirement: Retirement, bounds: MachineBounds, now: int) -> Iterator[None]:
        before = find_due(retirement, bounds.machine, bounds.retention, now)
        if before is not None and (bounds.retention.archive is False or self._store() is None):
            before = min(before, find_insight_mark(bounds.machine, now))
        for partition in retirement.partitions(bounds.machine):
            if before is not None:
                for state in retirement.final_states(bounds.machine):
                    yield from self._keep_state(retirement, bounds, partition, state, before)
            if bounds.retention.dead is not None:
                yield from self._purge_dead_jobs(retirement, partition, now - bounds.retention.dead)
            if bounds.retention.log is not None:
                retirement.trim_log(partition, max(0, now - bounds.retention.log))

    def _keep_state(
        self, retirement: Retirement, bounds: MachineBounds, partition: Partition, state: str, before: int
    ) -> Iterator[None]:
        """Let go of the due instances of one state. Those that stay are passed over."""
        keep_copy = self._store() if bounds.retention.archive is not False else None
        skip, gone = 0, 0
        while True:
            batches, full = self._gather(retirement, bounds, partition, state, before, skip, keep_copy)
            looked = sum(batch.looked for batch in batches)
            due = [one for batch in batches for one in batch.instances]
            if keep_copy is not None and due:
                at = int(time.time() * 1000)
                keep_copy.write([ArchivedInstance.of(one, bounds.index, at) for one in due])
            removed = 0
            for batch in batches:
                if batch.instances:
                    retired = retirement.retire(batch, actor=ACTOR)
                    self._share.spend(retired.micros)
                    removed += retired.gone
            self.gone, gone, skip = self.gone + removed, gone + removed, skip + looked - removed
            if looked:
                yield
            if not full:
                break
        if gone:
            log.info("retention: %d instances of %s in %s went", gone, bounds.machine, state)

    def _gather(
        self, retirement: Retirement, bounds: MachineBounds, partition: Partition, state: str, before: int, skip: int,
        store: Archive | None,
    ) -> tuple[list[Batch], bool]:  # fmt: skip
        """Read as many instances as the archive best takes at once; return them, and whether there may be more."""
        wanted, looked, steps = store.batch if store else READ, 0, 0
        batches: list[Batch] = []
        while looked < wanted and steps < MAX_STEPS:
            batch = retirement.read(bounds.machine, partition, state, before, skip=skip + looked, limit=bounds.read)
            self._share.spend(batch.micros)
            due = [one for one in batch.instances if is_due(one, before)]
            batches.append(Batch(batch.partition, due, batch.looked, batch.micros))
            looked, steps = looked + batch.looked, steps + sum(len(one.steps) for one in due)
            if batch.looked < bounds.read:
                return batches, False
        return batches, True

    def _purge_dead_jobs(self, retirement: Retirement, partition: Partition, before: int) -> Iterator[None]:
        for queue in retirement.queues(partition):
            while (gone := retirement.purge_dead(partition, queue, max(0, before), actor=ACTOR)) > 0:
                log.info("retention: %d dead jobs of %s in %s went", gone, queue, partition.root)
                yield

    def _store(self) -> Archive | None:
        store = self._archive or get_archive()
        return store if store.enabled else None


def find_due(retirement: Retirement, machine: str, retention: Retention, now: int) -> int | None:
    """Return the ms at or before which finished instances have to go; None where none has to."""
    bounds = []
    if retention.finished is not None:
        bounds.append(now - retention.finished)
    if retention.most is not None and (cutoff := retirement.find_cutoff(machine, retention.most, now)) is not None:
        bounds.append(cutoff)
    return max(bounds, default=None)


def find_insight_mark(machine: str, now: int) -> int:
    """Return the ms up to which insight need not read a machine any more: read already, or an hour ago."""
    if conf.INSIGHT is None or machine in builtin_machines.NAMES:
        return now
    try:
        return max(get_store().manifest(machine).read_up_to, now - HOLD)
    except InsightOff:
        return now
    except StoreUnavailable:
        return now - HOLD


def is_due(found: FinishedInstance, before: int) -> bool:
    """Tell whether an instance ended at or before a time, and is not suspended."""
    return found.finished <= before and "_suspended" not in found.raw
