"""Compares all rows of an attached model with the instances that mirror them, and writes what differs: rows decide.

It finds what no signal tells: ``queryset.update()``, ``bulk_create``, SQL by hand, other programs, and commits while
Redis was away. Rows are read in pages by their primary key, instances in pages of the engine, so a table of any size
takes the memory of a page.
"""

from __future__ import annotations

import logging
import os
import random
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from django.db import Error as DatabaseError
from django.db import router
from django.db.models import Model, Q
from django.utils import timezone

from machines.conf import conf
from machines.conf.database import DatabaseDuty
from machines.conf.server_share import SPELL, Walk
from machines.engine import Engine, EngineUnavailable, Instance, SignalboxError, UnknownInstance
from machines.engine.search.page_merge import find_pages

from ..binding.models import Reconciliation
from ..comparison import EQUAL, MISSING, PAGE, ROWLESS, Comparison
from . import definition, mirror, registry
from .columns import Row
from .registry import Attachment

log = logging.getLogger(__name__)

OTHER, DATA, UNREAD = "other", "other data", "not mirrored"
MEANINGS = {
    EQUAL: "the instance is in the state of its row",
    OTHER: "the row has another state than its instance: it was written without a transition, or while Redis was away",
    DATA: "the row has other values in the columns that its instance carries",
    MISSING: "the row had no instance",
    ROWLESS: "the instance has no row",
    UNREAD: "the row's state is not declared, its key can be no id, or its instance could not be read",
}
LOOK = 15.0  # seconds between two looks at what is due
HOLD = timedelta(seconds=60)  # a worker that says nothing for as long has lost its run


class Report(Comparison):
    """What was found of an attached model."""

    meanings = MEANINGS

    @property
    def differences(self) -> int:
        return sum(self.counts[kind] for kind in MEANINGS if kind != EQUAL)

    @property
    def left(self) -> int:
        return self.differences - self.mended

    def as_dict(self) -> dict[str, Any]:
        """Return the report as it is stored: ``counts`` and ``examples`` by kind, ``mended``."""
        return {"counts": dict(self.counts), "examples": self.examples, "mended": self.mended}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Report:
        counts, examples = stored.get("counts", {}), stored.get("examples", {})
        return cls(Counter(counts), dict(examples), stored.get("mended", 0))


class Reconcile:
    """One comparison. Safe at any time: what moves meanwhile is read again before it is written."""

    def __init__(self, engine: Engine, attachment: Attachment, *, dry_run: bool = False) -> None:
        self._engine = engine
        self._attachment = attachment
        self._dry_run = dry_run
        self._using = router.db_for_write(attachment.model)
        self.report = Report()

    def run(self) -> Report:
        """Compare all pages. Raises EngineUnavailable, DefinitionError; with ``dry_run`` UnknownMachine where nothing
        is mirrored yet."""
        for _ in self.pages():
            pass
        return self.report

    def pages(self) -> Iterator[int]:
        """Compare a page for each value taken, and yield how many rows or instances it had."""
        if not self._dry_run:
            definition.publish(self._engine, self._attachment)
            definition.migrate(self._engine, self._attachment)
        yield from self._rows()
        yield from self._instances()

    def _rows(self) -> Iterator[int]:
        model: Any = self._attachment.model
        rows = model._base_manager.using(self._using).order_by("pk")
        last = None
        while page := self._attachment.read((rows if last is None else rows.filter(pk__gt=last))[:PAGE]):
            last = page[-1][0]
            self._compare(page)
            yield len(page)

    def _compare(self, page: list[tuple[Any, Row]]) -> None:
        found = self._engine.get_many(self._attachment.machine, [str(pk) for pk, _ in page])
        differing = {}
        for (pk, row), live in zip(page, found, strict=True):
            kind, text = self._classify(pk, row, live)
            self.report.add(kind, text)
            if kind in (OTHER, DATA, MISSING):
                differing[pk] = text
        self._mend(differing)

    def _classify(self, pk: Any, row: Row, live: Instance | SignalboxError) -> tuple[str, str]:
        state = self._attachment.states.find(row.state)
        if state is None:
            return UNREAD, f"{pk}: the row says {row.state!r}, which is in no choice and no transition"
        if isinstance(live, UnknownInstance):
            return MISSING, f"{pk}: the row says {state}"
        if isinstance(live, SignalboxError):
            return UNREAD, f"{pk}: {live.message}"
        if live.state != state:
            return OTHER, f"{pk}: the row says {state}, its instance {live.state}"
        if changes := row.list_changes(live.data, self._attachment.columns):
            return DATA, f"{pk}: {', '.join(changes)}"
        return EQUAL, ""

    def _mend(self, differing: dict[Any, str]) -> None:
        if self._dry_run or not differing:
            return
        settled = mirror.settle(self._engine, self._attachment, differing, self._using)
        self.report.mended += len(differing) - len(settled.errors)
        for id, text in settled.errors.items():
            self.report.examples.setdefault(UNREAD, []).append(f"{id}: {text}")

    def _instances(self) -> Iterator[int]:
        for page in find_pages(self._engine, self._attachment.machine, limit=PAGE):
            ids = {instance.id: instance for instance in page}
            pks = {id: pk for id in ids if (pk := _read_key(self._attachment.model, id)) is not None}
            there = mirror.read_rows(self._attachment, pks.values(), self._using) if pks else {}
            rowless = [id for id in ids if id not in there]
            for id in rowless:
                self.report.add(ROWLESS, f"{id}: {ids[id].state}")
            self._mend({pks[id]: "" for id in rowless if id in pks})
            if not self._dry_run:
                self._remove([ids[id] for id in rowless if id not in pks])
            yield len(ids)

    def _remove(self, instances: list[Instance]) -> None:
        """Remove instances of which the id can be no key of the table."""
        for one in instances:
            self._engine.delete(one.machine, one.id, actor=mirror.ACTOR, reason="no row can have this key")
            self.report.mended += 1


def _read_key(model: type[Model], id: str) -> Any:
    """Return the primary key that an id stands for; None where it can be none."""
    try:
        return model._meta.pk.to_python(id)  # type: ignore[union-attr]
    except Exception:  # ValidationError, and what fields of projects raise
        return None


class ReconcileDuty(DatabaseDuty):
    """Runs what is due, a second at a time."""

    MESSAGE = "mirrors cannot be compared with their tables: %s"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._holder = f"{socket.gethostname()}:{os.getpid()}"
        self._run = Walk()
        self._is_under_way = False

    def look(self) -> bool:
        """Compare for about a second. There is never more to do at once: the pause is the other half."""
        self._is_under_way = False
        if registry.list_attached():
            self._is_under_way = self._run.go_on(self._begin)
        return False

    def pause(self) -> float:
        """Return seconds: short within a run, else not the same each time."""
        return SPELL if self._is_under_way else LOOK * random.uniform(0.8, 1.2)  # noqa: S311  spreading load

    def _begin(self) -> Iterator[None]:
        for attachment in registry.list_attached():
            if self._claim(attachment):
                return self._walk(attachment)
        return iter(())

    def _claim(self, attachment: Attachment) -> bool:
        now = timezone.now()
        Reconciliation.objects.get_or_create(machine=attachment.machine)
        due = Q(wanted__isnull=False)
        if conf.RECONCILE:
            due |= Q(ended__isnull=True) | Q(ended__lt=now - timedelta(seconds=conf.RECONCILE))
        free = Q(held_until__isnull=True) | Q(held_until__lt=now)
        rows = Reconciliation.objects.filter(due & free, machine=attachment.machine)
        return bool(rows.update(holder=self._holder, held_until=now + HOLD, begun=now, read=0, report={}))

    def _walk(self, attachment: Attachment) -> Iterator[None]:
        """Compare page by page; yields after each. What was found is stored about once a second."""
        run = Reconcile(self._engine, attachment)
        error, read, reported_at = "", 0, time.monotonic()
        try:
            for count in run.pages():
                read += count
                if time.monotonic() - reported_at >= SPELL:
                    reported_at = time.monotonic()
                    if not self._report(attachment, read, run):
                        log.warning("%s: another worker compares it, this one leaves off", attachment.label)
                        return
                yield
        except EngineUnavailable as fault:
            error = f"Redis did not answer: {fault.message}"
        except SignalboxError as fault:
            error = fault.message
        except DatabaseError as fault:  # of the model's own database
            error = f"the table cannot be read: {fault}"[:1000]
        self._end(attachment, read, run, error)

    def _report(self, attachment: Attachment, read: int, run: Reconcile) -> bool:
        rows = Reconciliation.objects.filter(machine=attachment.machine, holder=self._holder)
        return bool(rows.update(held_until=timezone.now() + HOLD, read=read, report=run.report.as_dict()))

    def _end(self, attachment: Attachment, read: int, run: Reconcile, error: str) -> None:
        kept = run.report.as_dict() | ({"error": error} if error else {})
        mine = Reconciliation.objects.filter(machine=attachment.machine, holder=self._holder)
        found = mine.first()
        if found is None:
            return
        mine.update(ended=timezone.now(), held_until=None, read=read, report=kept)
        mine.filter(wanted__lte=found.begun).update(wanted=None, wanted_by="")
        if error or run.report.left:
            log.warning("%s: %s", attachment.label, error or f"{run.report.left} differences are left")
