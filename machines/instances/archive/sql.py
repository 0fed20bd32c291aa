"""The archive in the database. On PostgreSQL the table has one partition for each month in which instances finished."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import connection, transaction
from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import Length

from machines.engine import BadInput

from ..models import ArchivedInstance, ArchiveTotal

LAST = "\U0010ffff"  # no character is after it
_CURSOR = re.compile(r"(\d{1,15}):(.{1,200})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Page:
    """Records, the newest first. ``cursor``: for the next page; None on the last one."""

    records: list[ArchivedInstance]
    cursor: str | None


class SqlArchive:
    """Records as rows of ``ArchivedInstance``. ``batch``: how many instances are best written at once; ``enabled``:
    False where nothing is archived."""

    batch = 500
    enabled = True

    def _rows(self) -> QuerySet[ArchivedInstance]:
        return ArchivedInstance.objects.all()

    def write(self, records: Sequence[ArchivedInstance]) -> int:
        """Write all of them or none, in one transaction; return how many are new. One that was written before is not
        written again."""
        if not records:
            return 0
        if connection.vendor == "postgresql":
            for month in sorted({find_month(record.finished) for record in records}):
                make_partition(month)
        with transaction.atomic():
            written = _insert(records)
            totals: dict[str, list[ArchivedInstance]] = {}
            for record in written:
                totals.setdefault(record.machine, []).append(record)
            for some in totals.values():
                add_to_totals(some)
        return len(written)

    def find(self, machine: str, instance: str) -> ArchivedInstance | None:
        """Return the newest record of an instance."""
        return self._rows().filter(machine=machine, instance=instance).order_by("-finished").first()

    def find_all(self, machine: str, instance: str) -> list[ArchivedInstance]:
        """Return every record of an instance: one for each time it ended."""
        return list(self._rows().filter(machine=machine, instance=instance))

    def find_machines(self, instance: str, machines: Sequence[str]) -> list[str]:
        """List those of these machines that have a record of this instance, by name."""
        rows = self._rows().filter(machine__in=machines, instance=instance)
        return list(rows.values_list("machine", flat=True).distinct().order_by("machine"))

    def search(
        self, machine: str, *, prefix: str = "", state: str = "", since: int | None = None, until: int | None = None,
        limit: int = 50, cursor: str | None = None,
    ) -> Page:  # fmt: skip
        """List instances that finished from ``since`` on and before ``until`` (ms), the newest first."""
        rows = self._rows().filter(machine=machine)
        if prefix:
            rows = rows.filter(instance__gte=prefix, instance__lt=prefix + LAST)
        if state:
            rows = rows.filter(state=state)
        if since is not None:
            rows = rows.filter(finished__gte=since)
        if until is not None:
            rows = rows.filter(finished__lt=until)
        if cursor:
            finished, instance = read_cursor(cursor)
            rows = rows.filter(finished__lte=finished).filter(
                Q(finished__lt=finished) | Q(finished=finished, instance__gt=instance)
            )
        found = list(rows.order_by("-finished", "instance")[: limit + 1])
        last = found[limit - 1] if len(found) > limit else None
        return Page(found[:limit], f"{last.finished}:{last.instance}" if last else None)

    def walk(self, machine: str) -> Iterator[ArchivedInstance]:
        return self._rows().filter(machine=machine).iterator(chunk_size=1000)

    def erase(self, machine: str, instance: str) -> int:
        return remove(self._rows().filter(machine=machine, instance=instance))


class NoArchive(SqlArchive):
    """Holds nothing: instances go without a copy."""

    enabled = False

    def _rows(self) -> QuerySet[ArchivedInstance]:
        return ArchivedInstance.objects.none()

    def write(self, records: Sequence[ArchivedInstance]) -> int:
        return 0


def remove(rows: QuerySet[ArchivedInstance]) -> int:
    """Remove rows, and take them off the totals, in one transaction; return how many."""
    with transaction.atomic():
        gone: dict[str, list[tuple[tuple[str, str, int], int]]] = {}
        for machine, instance, finished, size in rows.values_list("machine", "instance", "finished", Length("body")):
            gone.setdefault(machine, []).append(((machine, instance, finished), size))
        for machine, some in gone.items():
            ArchivedInstance.objects.filter(pk__in=[key for key, _ in some]).delete()
            take_off_totals(machine, len(some), sum(size for _, size in some))
    return sum(map(len, gone.values()))


def recount() -> None:
    """Count the rows of each machine anew, after whole partitions went."""
    found = ArchivedInstance.objects.values_list("machine").annotate(count=Count("instance"), size=Sum(Length("body")))
    counted = {machine: (count, size or 0) for machine, count, size in found.order_by()}
    for total in ArchiveTotal.objects.all():
        total.instances, total.bytes = counted.get(total.machine, (0, 0))
        total.save(update_fields=["instances", "bytes"])


def find_month(ms: int) -> tuple[int, int]:
    """Return year and month (UTC) of a time."""
    at = datetime.fromtimestamp(ms / 1000, UTC)
    return at.year, at.month


def make_partition(month: tuple[int, int]) -> None:
    """Make the table's partition for a month, unless it is there."""
    year, number = month
    begin = datetime(year, number, 1, tzinfo=UTC)
    end = datetime(year + number // 12, number % 12 + 1, 1, tzinfo=UTC)
    table = ArchivedInstance._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TABLE IF NOT EXISTS {table}_{year:04}{number:02} PARTITION OF {table} "
            f"FOR VALUES FROM ({_ms(begin)}) TO ({_ms(end)})"
        )


def drop_partitions(before: int) -> int:
    """Drop the partitions of months that ended before a time in ms; return how many. Only on PostgreSQL."""
    table = ArchivedInstance._meta.db_table
    year, month = find_month(before)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT child.relname FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid "
            "JOIN pg_class parent ON parent.oid = inhparent WHERE parent.relname = %s ORDER BY 1",
            [table],
        )
        old = [name for (name,) in cursor.fetchall() if name < f"{table}_{year:04}{month:02}"]
        for name in old:
            cursor.execute(f"DROP TABLE {connection.ops.quote_name(name)}")
    if old:
        recount()
    return len(old)


def _ms(at: datetime) -> int:
    return int(at.timestamp()) * 1000


def _insert(records: Sequence[ArchivedInstance]) -> list[ArchivedInstance]:
    """Insert those that are not there; return them. Only one worker at a time lets go, so nobody else inserts."""
    there = set(
        ArchivedInstance.objects.filter(
            machine__in={record.machine for record in records}, instance__in=[record.instance for record in records]
        ).values_list("machine", "instance", "finished")
    )
    fresh = [record for record in records if record.pk not in there]
    ArchivedInstance.objects.bulk_create(fresh, ignore_conflicts=True)
    return fresh


def add_to_totals(records: Sequence[ArchivedInstance]) -> None:
    """Count archived records of one machine."""
    size, last = sum(len(record.body) for record in records), max(record.archived for record in records)
    machine = records[0].machine
    ArchiveTotal.objects.get_or_create(machine=machine)
    ArchiveTotal.objects.filter(machine=machine).update(
        instances=F("instances") + len(records), bytes=F("bytes") + size, last=last
    )


def take_off_totals(machine: str, count: int, size: int) -> None:
    """Count records that went."""
    ArchiveTotal.objects.filter(machine=machine).update(instances=F("instances") - count, bytes=F("bytes") - size)


def read_cursor(cursor: str) -> tuple[int, str]:
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise BadInput("the cursor is none of the archive", code="SB405")
    return int(found[1]), found[2]
