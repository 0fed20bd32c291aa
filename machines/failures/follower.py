"""The background duty that counts dead jobs: reads what died since the position of each queue.

Dead jobs stay in Redis until they are re-driven, withdrawn or purged, so nothing is lost while the database is away,
and the path of a job does no work for this. Deaths are exact; attempts are those of jobs that died. A job that is
re-driven or purged within a few seconds of its death may not be counted.
"""

from __future__ import annotations

import logging
import time

from machines.conf.database_retry import DatabaseRetry
from machines.engine import Engine, EngineFault, LookupFailed

from . import recording
from .dead_jobs import DeadJobs, Place
from .open_jobs import refresh_some

log = logging.getLogger(__name__)

PAUSE = 5.0  # seconds
PAGE = 200  # jobs of one transaction
PAGES = 20  # of one pass: the other duties get their turn
OVERLAP = 60_000  # ms before the position that are read again: a server that took over may have an older clock
REMEMBERED = 50_000  # queues
WHOLE = 600.0  # seconds after which all queues are looked at, whatever the servers remember
RELIST = 60.0  # seconds after which partitions are listed anew, whatever the revision of the catalog says


class FailureFollower:
    """One worker at a time runs it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._jobs = DeadJobs(engine)
        self._seen: dict[tuple[str, int, str], tuple[str, int]] = {}
        self._changes = engine.wakeups.watch_changes(whole=WHOLE)
        self._listed: tuple[str, float, dict[str, tuple[str, int]]] | None = None  # revision, moment, partitions
        self._changed: set[str] = set()  # roots of partitions that changed and were not read to their end
        self._database = DatabaseRetry(log, "failures are not counted while the database is away: %s")

    def once(self) -> bool:
        """Run one pass; return whether more is left."""
        with self._database.around():
            return self.look()
        return False

    def pause(self) -> float:
        return PAUSE

    def look(self) -> bool:
        """Run one pass; raise errors of the database."""
        partitions = self._list_partitions()
        self._changed |= self._changes.find(partitions)
        places = self._jobs.places({root: at for root, at in partitions.items() if root in self._changed})
        pages = PAGES
        if len(self._seen) > REMEMBERED:
            self._seen.clear()
        for place, newest in zip(places, self._jobs.newest(places), strict=True):
            name = (place.machine, place.number, place.queue)
            if not newest[1] or self._seen.get(name) == newest:
                continue
            if pages <= 0:
                return True
            pages -= self._read(place)
            self._seen[name] = newest
        self._changed.clear()
        refresh_some(self._jobs, now=_read_clock())
        return False

    def _list_partitions(self) -> dict[str, tuple[str, int]]:
        revision, now, held = self._engine.catalog_revision(), time.monotonic(), self._listed
        if held is None or held[0] != revision or now - held[1] >= RELIST:
            held = self._listed = revision, now, self._jobs.partitions()
        return held[2]

    def _read(self, place: Place) -> int:
        """Count what is new in one queue; return how many pages were read. A pass that is killed begins again at the
        position of its last whole page."""
        try:
            hidden = bool(self._engine.sensitive(place.machine))
        except LookupFailed:
            return 1
        since, skip, pages = max(0, recording.read_position(place) - OVERLAP), 0, 0
        while True:
            try:
                found = self._jobs.list_ids(place, since, skip, PAGE)
                jobs = self._jobs.read(place, [id for id, _ in found])
            except EngineFault as error:
                log.error("failures of %s in %s cannot be read: %s", place.queue, place.partition.root, error)
                return pages + 1
            pages += 1
            if found:
                recording.record(place, jobs, found[-1][1], hidden=hidden, now=_read_clock())
            if len(found) < PAGE:
                return pages
            last = found[-1][1]
            since, skip = (last, 0) if last > since else (since, skip + len(found))


def _read_clock() -> int:
    return int(time.time() * 1000)
