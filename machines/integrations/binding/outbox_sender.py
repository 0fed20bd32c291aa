"""The duty of every worker that sends what waits in the outbox."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from machines.conf.database import DatabaseRetry
from machines.connections import get_throttle
from machines.engine import SignalboxError

from . import delivery, outbox, registry

if TYPE_CHECKING:
    from .field import MachineField

log = logging.getLogger(__name__)


class OutboxSender:
    """Sends what is due, has instances created for rows that have none, and removes old entries.

    Where the project has no field, or has none any more, it ends the entries that earlier fields left.
    """

    NONE = 30.0  # seconds between two passes where the project has no machine field
    EVERY = 0.5  # seconds between two passes that find nothing
    SWEEP = 10.0  # seconds between two looks for rows without an instance
    PRUNE = 60.0  # seconds between two looks for old entries

    def __init__(self) -> None:
        self._fields = registry.list_fields()
        self._database = DatabaseRetry(log, "events of rows wait for the database: %s")
        self._swept = self._pruned = -float("inf")
        self._unfinished: list[tuple[MachineField, str]] = []  # tables whose rows are looked at now
        self._aliases: list[str] = []
        self._after: dict[tuple[str, str], Any] = {}  # up to which row each table was swept

    def once(self) -> bool:
        """Make one pass; tell whether there may be more."""
        with self._database.around():
            return self._pass()
        return False

    def pause(self) -> float:
        return self.EVERY if self._fields else self.NONE

    def _pass(self) -> bool:
        now = time.monotonic()
        if now - self._swept >= self.SWEEP:
            self._swept = now
            self._aliases = registry.list_outboxes()
            if self._fields and get_throttle().count("bind.sweep", "turn", limit=1, per=self.SWEEP).allowed:
                self._unfinished = [(field, using) for field in self._fields for using in field.databases()]
        self._unfinished = [one for one in self._unfinished if self._create_missing(*one)]
        sent = sum(delivery.send_due(using) for using in self._aliases)
        if now - self._pruned >= self.PRUNE:
            self._pruned = now
            for using in self._aliases:
                outbox.prune(using)
        return sent > 0 or bool(self._unfinished)

    def _create_missing(self, field: MachineField, using: str) -> bool:
        """Create the instances of a page of rows that have none; tell whether to go on at once. Where none of a page
        could be created, the next page has its turn with the next look."""
        place = field.label, using
        try:
            count, self._after[place] = outbox.create_missing(field, using, after=self._after.get(place))
        except SignalboxError as error:
            log.info("rows of %s without an instance wait: %s", field.label, error)
            return False
        return count > 0 and self._after[place] is not None
