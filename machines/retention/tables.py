"""Lets go of rows of the database beyond their bounds: audit entries, archived instances, the history of alarms, and
the number of rows of statistics and webhook deliveries, whose age their own duties bound."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime

from django.db import connection
from django.db.models import Model, QuerySet

from machines.alarms.models import AlarmEvent
from machines.audit import chain
from machines.audit.models import AuditEntry
from machines.conf import conf
from machines.conf.retention_policy import Policy, TableBound, parse_policy
from machines.instances.archive import sql
from machines.instances.models import ArchivedInstance
from machines.statistics.models import Measurement
from machines.webhooks.models import Delivery

log = logging.getLogger(__name__)

AT_ONCE = 2000  # rows of one statement: a transaction, and its locks, stay short
MODELS: dict[str, type[Model]] = {
    "statistics": Measurement,
    "webhooks": Delivery,
    "alarms": AlarmEvent,
}
SEAL_PAUSE = 3_600_000  # ms between two seals, while fewer rows than AT_ONCE are due
ALARMS_AGE = 90 * 86_400_000
"""ms: the age of the history of alarms where the setting does not say otherwise."""


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
    return _delete(model._default_manager.filter(at__lt=_read_time(now - age)), AT_ONCE)


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
    return _delete(rows, min(excess, AT_ONCE)) if excess > 0 else 0


def _delete(rows: QuerySet, most: int) -> int:
    """Delete the oldest rows."""
    found = list(rows.order_by("pk").values_list("pk", flat=True)[:most])
    return rows.model._default_manager.filter(pk__in=found).delete()[0] if found else 0


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
