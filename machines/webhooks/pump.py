"""Reads what machines emit and makes the deliveries, each message exactly once for each webhook that wants it."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from machines.connections import get_throttle
from machines.databases import Patience
from machines.engine import Engine
from machines.engine.emitted import START, Emitted, End, Entry, Place
from machines.models import Delivery, LogCursor, LogGap, Webhook

from .matching import wants
from .writing import Writer

log = logging.getLogger(__name__)

PAGE = 500  # entries of one log in a transaction
KEEP = timedelta(days=30)  # deliveries and gaps, whatever became of them
PRUNE = 500  # rows a pass removes at most


class Pump:
    """Every worker has one; of all of them one looks each second, and any other could have been it."""

    EVERY = 1.0  # seconds
    IDLE = 5.0  # seconds between two looks for a webhook where there is none

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._database = Patience(log, "webhooks wait for the database: %s")
        self._idle = True

    def once(self) -> bool:
        """One pass. Says whether a log has more; what is wrong with the database waits, and is told once."""
        with self._database.around():
            return self._look()
        return False

    def pause(self) -> float:
        return self.IDLE if self._idle or self._database.away else self.EVERY

    def _look(self) -> bool:
        webhooks = list(Webhook.objects.filter(active=True))
        self._idle = not webhooks
        if not webhooks:
            return False
        # The turn is for economy alone: the cursor sees to it that two who look at once do no harm.
        if not get_throttle().count("webhooks.pump", "turn", limit=1, per=self.EVERY).allowed:
            return False
        prune()
        return pump(self._engine.emitted(), webhooks)


def pump(emitted: Emitted, webhooks: Sequence[Webhook]) -> bool:
    """Reads a page of each log that has something new. Says whether there may be more."""
    cursors = {(cursor.machine, cursor.partition): cursor for cursor in LogCursor.objects.all()}
    writer, more = Writer(), False
    for place, end in emitted.ends().items():
        cursor = cursors.get(place) or LogCursor(machine=place[0], partition=place[1])
        if (end.last, end.added) != (cursor.read, cursor.position):
            more |= _advance(emitted, cursor, end, webhooks, writer)
    return more


def _advance(emitted: Emitted, cursor: LogCursor, end: End, webhooks: Sequence[Webhook], writer: Writer) -> bool:
    """One page of one log. What it let go is known by counting: it tells how many entries it ever got."""
    place = (cursor.machine, cursor.partition)
    replaced = end.added < cursor.position or _order(end.last) < _order(cursor.read)
    start, base = (START, 0) if replaced else (cursor.read, cursor.position)
    entries = emitted.after(place, start, count=PAGE)
    read = entries[-1].id if entries else end.last
    lost = 0 if replaced else max(0, end.gone - base)
    position = max(base, end.gone) + len(entries)
    if read == end.last and position < end.added:  # it let go of more between the two looks
        lost, position = lost + end.added - position, end.added
    gap = LogGap(machine=place[0], partition=place[1], after=cursor.read, lost=lost) if replaced or lost else None
    emits = (entry for entry in entries if entry.kind == "emit")
    rows = [row for entry in emits for row in _deliveries(place, entry, webhooks, writer)]
    if _keep(cursor, read, position, gap, rows) and gap is not None:
        log.warning("webhooks: %d entries of the log of %s:%d were gone before they were read", lost, *place)
    return len(entries) == PAGE


def _keep(cursor: LogCursor, read: str, position: int, gap: LogGap | None, rows: list[Delivery]) -> bool:
    """All of it or nothing; nothing where another worker has moved the cursor meanwhile."""
    with transaction.atomic():
        if cursor.pk is None:
            cursor, made = LogCursor.objects.get_or_create(machine=cursor.machine, partition=cursor.partition)
            if not made:
                return False
        held = LogCursor.objects.filter(pk=cursor.pk, read=cursor.read, position=cursor.position)
        if not held.update(read=read, position=position):
            return False
        if gap is not None:
            gap.save()
        Delivery.objects.bulk_create(rows, ignore_conflicts=True)  # a log that was replaced may have kept its entries
    return True


def _deliveries(place: Place, entry: Entry, webhooks: Sequence[Webhook], writer: Writer) -> list[Delivery]:
    wanted = [webhook for webhook in webhooks if wants(webhook, place[0], entry.name, entry.at)]
    if not wanted:
        return []
    message, body = f"{place[0]}:{place[1]}:{entry.id}", writer.body(place[0], entry)
    return [
        Delivery(
            webhook=webhook, message=message, key=new_key(), type=entry.name, machine=place[0],
            instance=entry.instance, body=body,
        )
        for webhook in wanted
    ]  # fmt: skip


def new_key() -> str:
    return f"msg_{secrets.token_hex(16)}"


def align(emitted: Emitted) -> None:
    """Puts every cursor at the end of its log: what nobody wanted is not missing."""
    for (machine, partition), end in emitted.ends().items():
        LogCursor.objects.update_or_create(
            machine=machine, partition=partition, defaults={"read": end.last, "position": end.added}
        )


def prune() -> None:
    """Takes out what is old, a little at a time."""
    before = timezone.now() - KEEP
    for rows in (Delivery.objects.filter(made_at__lt=before), LogGap.objects.filter(at__lt=before)):
        old = list(rows.order_by("pk").values_list("pk", flat=True)[:PRUNE])
        if old:
            rows.model.objects.filter(pk__in=old).delete()


def _order(id: str) -> tuple[int, int]:
    ms, _, number = id.partition("-")
    return int(ms), int(number or 0)
