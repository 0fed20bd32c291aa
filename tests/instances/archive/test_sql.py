"""The archive in the database: what it holds, finds and removes, on SQLite and on PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import connection

from machines.engine import BadInput
from machines.instances.archive.sql import SqlArchive, find_month, make_partition
from machines.instances.models import DamagedBody
from machines.models import ArchivedInstance, ArchiveTotal, AuditEntry
from machines.retention import duty
from tests.configuration import configure

from .conftest import at

pytestmark = pytest.mark.django_db
archive = SqlArchive()


def names(page) -> list[str]:
    return [record.instance for record in page.records]


def test_a_record_comes_back_as_it_was(record):
    kept = record("a", amount="7", note="größer", card="4111")
    assert archive.write([kept]) == 1
    found = archive.find("parcel", "a")
    assert found == kept
    assert found.indexed == '{"amount":"7"}'
    held = found.restore()
    assert (held.raw["note"], held.revision, held.finished) == ("größer", 3, at("2026-03-15"))
    assert [step[:3] for step in held.steps] == ["[1,", "[3,"]
    assert archive.find("parcel", "b") is None
    assert archive.find("other", "a") is None


def test_written_twice_is_once(record):
    some = [record(name) for name in "abc"]
    assert archive.write(some[:2]) == 2
    assert archive.write(some) == 1
    assert archive.write([]) == 0
    total = ArchiveTotal.objects.get(machine="parcel")
    assert (total.instances, total.bytes) == (3, sum(len(one.body) for one in some))
    assert total.last == some[0].archived


def test_an_instance_created_anew_is_there_for_each_time_it_finished(record):
    archive.write([record("a", "2026-03-15"), record("a", "2026-05-01", state="Dropped")])
    assert archive.find("parcel", "a").state == "Dropped"
    assert ArchivedInstance.objects.count() == 2
    assert archive.erase("parcel", "a") == 2
    assert ArchiveTotal.objects.get(machine="parcel").instances == 0


def test_a_search_goes_by_prefix_state_and_time_the_newest_first(record):
    archive.write([record("ATV-1", "2026-01-01"), record("ATV-2", "2026-02-01"), record("atv-3", "2026-02-02")])
    archive.write([record("ATW", "2026-03-01", state="Dropped"), record("ATV-9", "2026-04-01", machine="other")])
    assert names(archive.search("parcel")) == ["ATW", "atv-3", "ATV-2", "ATV-1"]
    assert names(archive.search("parcel", prefix="ATV-")) == ["ATV-2", "ATV-1"]
    assert names(archive.search("parcel", state="Dropped")) == ["ATW"]
    assert names(archive.search("parcel", since=at("2026-02-01"), until=at("2026-03-01"))) == ["atv-3", "ATV-2"]
    assert names(archive.search("parcel", prefix="ATV_")) == []


def test_pages_have_each_record_once_also_within_one_millisecond(record):
    archive.write([record(f"i{number:02}") for number in range(7)])
    found, cursor = [], None
    while True:
        page = archive.search("parcel", limit=3, cursor=cursor)
        found, cursor = found + names(page), page.cursor
        if cursor is None:
            break
    assert found == [f"i{number:02}" for number in range(7)]
    with pytest.raises(BadInput, match="cursor"):
        archive.search("parcel", cursor="soon")


def test_a_damaged_body_is_named(record):
    found = record("a")
    for body in (b"", b"no zlib", found.body[:-9]):
        found.body = body
        with pytest.raises(DamagedBody, match="parcel/a cannot be read"):
            found.restore()


def test_months_are_of_utc():
    assert find_month(at("2026-12-31") + 86_399_999) == (2026, 12)
    assert find_month(at("2027-01-01")) == (2027, 1)


def test_each_month_has_a_partition_where_the_database_has_partitions(record):
    archive.write([record("a", "2026-03-31"), record("b", "2026-04-01"), record("c", "2026-12-31")])
    archive.write([record("d", "2026-03-01")])
    if connection.vendor != "postgresql":  # tests/installation/settings/test_on_postgresql.py runs this there
        assert names(archive.search("parcel")) == ["c", "b", "a", "d"]
        return
    make_partition((2026, 3))
    assert partitions() == {"202603": 2, "202604": 1, "202612": 1}
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN SELECT * FROM machines_archivedinstance WHERE finished >= %s", [at("2026-12-01")])
        plan = " ".join(row[0] for row in cursor.fetchall())
    assert "202612" in plan
    assert "202603" not in plan


def test_old_archives_go_by_age_and_number(record, settings):
    archive.write([record("a", "2025-01-31"), record("b", "2026-02-01"), record("c", "2026-02-20")])
    configure(settings, RETAIN="archive=30d")
    duty.prune(at("2026-03-10"))
    assert names(archive.search("parcel")) == ["c"]
    assert ArchiveTotal.objects.get().instances == 1
    if connection.vendor == "postgresql":
        assert partitions() == {"202602": 1}
    archive.write([record("d", "2026-03-01")])
    configure(settings, RETAIN="archive_most=1")
    duty.prune(at("2026-03-10"))
    assert names(archive.search("parcel")) == ["d"]


def partitions() -> dict[str, int]:
    """Month -> rows."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tableoid::regclass::text, count(*) FROM machines_archivedinstance GROUP BY 1")
        return {name.rpartition("_")[2]: count for name, count in cursor.fetchall()}


def test_the_audit_goes_by_age_and_number(settings):
    for number in range(6):
        moment = datetime.fromtimestamp((at("2026-03-01") + number) / 1000, UTC)
        entry = AuditEntry(actor="ann", action="fire", outcome="done", at=moment)
        entry.save()
    configure(settings, RETAIN="audit_most=4")
    assert duty.prune(at("2026-03-02"))["audit"] == 2
    configure(settings, RETAIN="audit=1d")
    assert duty.prune(at("2026-03-02") + 4)["audit"] == 2
    assert AuditEntry.objects.exclude(action="audit.seal").count() == 2
    configure(settings, RETAIN="")
    assert duty.prune() == {"audit": 0, "statistics": 0, "webhooks": 0, "archive": 0, "alarms": 0}


def test_the_machines_that_have_a_record_of_an_instance_are_found(record):
    archive.write([record("a", "2026-03-01"), record("b"), record("a", "2026-04-01")])
    archive.write([record("a", machine="order"), record("a", machine="secret")])
    assert archive.find_machines("a", ["parcel", "order", "other"]) == ["order", "parcel"]
    assert archive.find_machines("b", ["parcel", "order"]) == ["parcel"]
    assert archive.find_machines("c", ["parcel"]) == archive.find_machines("a", []) == []
