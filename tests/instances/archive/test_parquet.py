"""The archive in Parquet files: the same records, pages and erasures as in the database."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet as files
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from machines.conf import retention_policy
from machines.instances.archive import store
from machines.instances.archive.parquet import ParquetArchive
from machines.models import ArchiveTotal
from tests.configuration import configure

from .conftest import at

pytestmark = pytest.mark.django_db


@pytest.fixture
def archive(tmp_path) -> ParquetArchive:
    return ParquetArchive(tmp_path)


def listed(page) -> list[str]:
    return [record.instance for record in page.records]


def test_a_record_comes_back_as_it_was(archive, record):
    kept = record("a", amount="7", note="größer")
    archive.write([kept, record("b")])
    assert archive.find("parcel", "a") == kept
    assert archive.find("parcel", "c") is None
    assert archive.find("other", "a") is None
    assert ArchiveTotal.objects.get().instances == 2


def test_the_column_of_the_version_keeps_its_name(archive, record, tmp_path):
    archive.write([record("a")])
    (file,) = tmp_path.rglob("*.parquet")
    columns = files.read_table(file).column_names
    assert ("definition" in columns, "version" in columns) == (True, False)


def test_there_is_a_folder_for_each_month(archive, record, tmp_path):
    archive.write([record("a", "2026-03-31"), record("b", "2026-04-01"), record("c", "2026-04-02")])
    found = sorted(path.relative_to(tmp_path).parent.as_posix() for path in tmp_path.rglob("*.parquet"))
    assert found == ["parcel/2026-03", "parcel/2026-04"]
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".parquet"}
    (april,) = (tmp_path / "parcel/2026-04").iterdir()
    assert files.read_table(april).column("instance").to_pylist() == ["b", "c"]


def test_written_twice_is_read_once(archive, record):
    archive.write([record("a"), record("b")])
    archive.write([record("a")])
    assert listed(archive.search("parcel")) == ["a", "b"]
    assert sorted(one.instance for one in archive.walk("parcel")) == ["a", "b"]
    assert len(archive.find_all("parcel", "a")) == 1


def test_a_search_goes_by_prefix_state_and_time_the_newest_first(archive, record):
    archive.write([record("ATV-1", "2026-01-01"), record("ATV-2", "2026-02-01"), record("atv-3", "2026-02-02")])
    archive.write([record("ATW", "2026-03-01", state="Dropped")])
    assert listed(archive.search("parcel")) == ["ATW", "atv-3", "ATV-2", "ATV-1"]
    assert listed(archive.search("parcel", prefix="ATV-")) == ["ATV-2", "ATV-1"]
    assert listed(archive.search("parcel", state="Dropped")) == ["ATW"]
    assert listed(archive.search("parcel", since=at("2026-02-01"), until=at("2026-03-01"))) == ["atv-3", "ATV-2"]
    found, cursor = [], None
    while True:
        page = archive.search("parcel", limit=3, cursor=cursor)
        found, cursor = found + listed(page), page.cursor
        if cursor is None:
            break
    assert found == ["ATW", "atv-3", "ATV-2", "ATV-1"]


@pytest.mark.django_db(transaction=True)
def test_erasures_at_once_bring_nothing_back(archive, record):
    ids = [f"i{number:02}" for number in range(12)]
    archive.write([record(id) for id in (*ids, "stays")])

    def erase(id: str) -> int:
        try:
            return archive.erase("parcel", id)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(ids)) as pool:
        assert list(pool.map(erase, ids)) == [1] * len(ids)
    assert listed(archive.search("parcel")) == ["stays"]


def test_an_erasure_leaves_the_others(archive, record, tmp_path):
    archive.write([record("a", "2026-03-01"), record("b", "2026-03-02")])
    archive.write([record("a", "2026-04-01")])
    assert archive.erase("parcel", "a") == 2
    assert [one.instance for one in archive.walk("parcel")] == ["b"]
    assert len(list(tmp_path.rglob("*.parquet"))) == 1
    assert ArchiveTotal.objects.get().instances == 1
    assert archive.erase("parcel", "a") == 0


def test_the_setting_names_it(settings, tmp_path, monkeypatch):
    configure(settings, ARCHIVE=f"parquet:{tmp_path}")
    assert isinstance(store.get_archive(), ParquetArchive)
    assert retention_policy.is_archive("parquet:/var/archive")
    assert not retention_policy.is_archive("parquet:relative")
    assert not retention_policy.is_archive("parquet:/")
    configure(settings, ARCHIVE=f"parquet:{tmp_path}/other")
    monkeypatch.setitem(sys.modules, "machines.instances.archive.parquet", None)
    with pytest.raises(ImproperlyConfigured, match=r"signalbox\[parquet\]"):
        store.get_archive()


def test_the_machines_that_have_a_record_of_an_instance_are_found(archive, record):
    archive.write([record("a", "2026-03-01"), record("b"), record("a", "2026-04-01")])
    archive.write([record("a", machine="order"), record("a", machine="secret")])
    assert archive.find_machines("a", ["parcel", "order", "other"]) == ["order", "parcel"]
    assert archive.find_machines("b", ["parcel", "order"]) == ["parcel"]
    assert archive.find_machines("c", ["parcel"]) == archive.find_machines("a", []) == []
