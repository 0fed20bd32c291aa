"""The background duty of workers that compares attached tables with their mirrors, one machine in one worker at a time.

Each worker whose project attaches a model looks for machines that are due: an hour after the last run (setting
``RECONCILE``), or when a person asks. A run goes in spells of a second, with a pause as long between them, so that it
takes half of a connection and the worker can stop at any time. Should the worker die, another one begins anew within a
minute.
"""

from __future__ import annotations

import logging
import os
import random
import socket
import time
from collections.abc import Iterator
from datetime import timedelta

from django.db import Error as DatabaseError
from django.db.models import Q
from django.utils import timezone

from machines.conf import conf
from machines.conf.database import DatabaseRetry
from machines.engine import Engine, EngineUnavailable, SignalboxError

from ..binding.models import Reconciliation
from . import registry
from .reconcile import Reconcile
from .registry import Attachment

log = logging.getLogger(__name__)

SPELL = 1.0  # seconds of one pass
LOOK = 15.0  # seconds between two looks at what is due
HOLD = timedelta(seconds=60)  # a worker that says nothing for as long has lost its run


class ReconcileDuty:
    """Runs what is due, a second at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._holder = f"{socket.gethostname()}:{os.getpid()}"
        self._run: Iterator[None] | None = None
        self._database = DatabaseRetry(log, "mirrors cannot be compared with their tables: %s")

    def once(self) -> bool:
        """Compare for about a second. There is never more to do at once: the pause is the other half."""
        if not registry.list_attached():
            return False
        with self._database.around():
            run, self._run = self._run or self._begin(), None
            until = time.monotonic() + SPELL
            for _ in run or ():
                if time.monotonic() >= until:
                    self._run = run
                    break
        return False

    def pause(self) -> float:
        """Return seconds: short within a run, else not the same each time."""
        return SPELL if self._run else LOOK * random.uniform(0.8, 1.2)  # noqa: S311  spreading load, not a secret

    def _begin(self) -> Iterator[None] | None:
        for attachment in registry.list_attached():
            if self._claim(attachment):
                return self._walk(attachment)
        return None

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
