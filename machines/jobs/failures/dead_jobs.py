"""Reads dead jobs of a partition in the order in which they died, the handled ones too, without moving anything; and
finds which of the counted jobs are still dead and unhandled."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from machines.conf.database import prepare_check
from machines.engine import Engine, LookupFailed
from machines.engine.keys import Partition
from machines.engine.storage import Storage, read_pairs

from .models import FailedJob

FIELDS = ("place", "finished", "src", "kind", "error", "attempt", "instance")
MAX_ATTEMPT = 10_000


@dataclass(frozen=True, slots=True)
class Place:
    """One queue of one partition of a machine."""

    machine: str
    number: int
    queue: str
    partition: Partition


@dataclass(frozen=True, slots=True)
class DeadJob:
    """``died``: ms; ``version``: of the definition that its instance follows now, 0 for none."""

    id: str
    died: int
    handler: str
    kind: str
    error: str
    attempts: int
    version: int


@dataclass(frozen=True, slots=True)
class JobRef:
    """Names one death of a job: a job that was retried can die again."""

    machine: str
    job: str
    died: int


class DeadJobs:
    """Reads the dead jobs of all machines."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._storage = Storage(engine.client)

    def places(self, partitions: Mapping[str, tuple[str, int]]) -> list[Place]:
        """List every queue of these partitions, in one round trip."""
        found = [(machine, number, Partition(root)) for root, (machine, number) in partitions.items()]
        names = self._storage.commands([(each.queues, ("SMEMBERS", each.queues)) for _, _, each in found])
        return [
            Place(machine, number, queue, each)
            for (machine, number, each), queues in zip(found, names, strict=True)
            for queue in sorted(queues)
        ]

    def newest(self, places: Sequence[Place]) -> list[tuple[str, int]]:
        """Return for each place its newest jobs and how many there are: what is unchanged need not be read."""
        sent: list[tuple[str, Sequence[Any]]] = []
        for key in (key for place in places for key in _make_keys(place)):
            sent += [(key, ("ZREVRANGE", key, 0, 0)), (key, ("ZCARD", key))]
        answers = self._storage.commands(sent)
        found = [((ids or [""])[0], int(count)) for ids, count in zip(answers[::2], answers[1::2], strict=True)]
        return [
            (f"{dead[0]} {handled[0]}", dead[1] + handled[1])
            for dead, handled in zip(found[::2], found[1::2], strict=True)
        ]

    def list_ids(self, place: Place, since: int, skip: int, limit: int) -> list[tuple[str, int]]:
        """List jobs that died at or after ``since`` (ms), the oldest first, each with the ms of its death."""
        words = (since, "+inf", "WITHSCORES", "LIMIT", 0, skip + limit)
        answers = self._storage.commands([(key, ("ZRANGEBYSCORE", key, *words)) for key in _make_keys(place)])
        found = [(int(float(score)), id) for each in answers for id, score in read_pairs(each).items()]
        return [(id, died) for died, id in sorted(found)[skip : skip + limit]]

    def read(self, place: Place, ids: Sequence[str]) -> list[DeadJob]:
        """Read jobs; those that are not dead any more are left out. Two round trips."""
        keys = [place.partition.job(id) for id in ids]
        rows = self._storage.commands([(key, ("HMGET", key, *FIELDS)) for key in keys])
        found = [
            (id, dict(zip(FIELDS, row, strict=True)))
            for id, row in zip(ids, rows, strict=True)
            if row[0] in ("dead", "handled")
        ]
        holders = [
            (i, place.partition.instance(row["instance"])) for i, (_, row) in enumerate(found) if row["instance"]
        ]
        answers = self._storage.commands([(key, ("HMGET", key, "_def")) for _, key in holders])
        versions = {i: _read_version(answer[0]) for (i, _), answer in zip(holders, answers, strict=True)}
        return [_read_job(id, row, versions.get(i, 0)) for i, (id, row) in enumerate(found)]

    def find_open(self, refs: Sequence[JobRef]) -> set[JobRef]:
        """Return those that are still dead by the same death, and whose instance has not dealt with it. One round
        trip; jobs of a machine that is gone are not open."""
        known = list(self._locate(refs))
        rows = self._storage.commands([(key, ("HMGET", key, "place", "finished")) for _, key in known])
        return {
            ref
            for (ref, _), (place, died) in zip(known, rows, strict=True)
            if place == "dead" and _read_whole(died) == ref.died
        }

    def _locate(self, refs: Iterable[JobRef]) -> Iterator[tuple[JobRef, str]]:
        by_machine: dict[str, dict[int, Partition]] = {}
        for ref in refs:
            if ref.machine not in by_machine:
                by_machine[ref.machine] = {}
                with suppress(LookupFailed):
                    by_machine[ref.machine] |= enumerate(self._engine.retirement().partitions(ref.machine))
            partition = by_machine[ref.machine].get(_read_whole(ref.job.partition("-")[0], -1))
            if partition is not None:
                yield ref, partition.job(ref.job)


def _make_keys(place: Place) -> tuple[str, str]:
    """Return the keys of the dead jobs that are open, and of those that their instances dealt with."""
    return place.partition.dead(place.queue), place.partition.handled(place.queue)


def _read_job(id: str, row: dict[str, Any], version: int) -> DeadJob:
    attempts = min(max(1, _read_whole(row["attempt"], 1)), MAX_ATTEMPT)
    return DeadJob(
        id, _read_whole(row["finished"]), row["src"] or "", row["kind"] or "", row["error"] or "", attempts, version
    )


def _read_version(text: str | None) -> int:
    return _read_whole((text or "").partition(":")[0])


def _read_whole(text: str | None, otherwise: int = 0) -> int:
    """Read a whole number from a hash that any program may have written."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else otherwise


SOME = 1_000  # jobs of one pass of the follower
AT_ONCE = 1_000  # jobs of one round trip
MAX_OPEN = 10_000  # jobs of a group that one action takes


_has_open = prepare_check(FailedJob.objects.filter(open=True))


def refresh_some(jobs: DeadJobs, *, now: int) -> int:
    """Look at the open jobs that were not looked at for longest; return how many have gone."""
    if not _has_open():
        return 0
    rows = list(FailedJob.objects.filter(open=True).order_by("checked", "pk")[:SOME])
    return len(rows) - len(refresh(jobs, rows, now=now))


def refresh(jobs: DeadJobs, rows: Sequence[FailedJob], *, now: int) -> list[FailedJob]:
    """Look at these jobs, ``SOME`` at most, and note which are open; return those."""
    still = list_open(jobs, rows)
    found = {row.pk for row in still}
    FailedJob.objects.filter(pk__in=[row.pk for row in rows if row.pk not in found]).update(open=False)
    FailedJob.objects.filter(pk__in=found).update(checked=now)
    return still


def list_open(jobs: DeadJobs, rows: Iterable[FailedJob]) -> list[FailedJob]:
    """Return those of the jobs that are open as of now; write nothing."""
    rows, still = list(rows), list[FailedJob]()
    for first in range(0, len(rows), AT_ONCE):
        part = rows[first : first + AT_ONCE]
        found = jobs.find_open([_make_ref(row) for row in part])
        still += [row for row in part if _make_ref(row) in found]
    return still


def list_open_of(jobs: DeadJobs, rows: QuerySet[FailedJob]) -> list[FailedJob]:
    """Return the open jobs among the rows as of now, the oldest first; looks at ``MAX_OPEN`` at most."""
    return list_open(jobs, rows.filter(open=True).order_by("died", "pk")[:MAX_OPEN])


def _make_ref(row: FailedJob) -> JobRef:
    return JobRef(row.machine, row.job, row.died)
