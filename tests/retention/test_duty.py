"""The duty that lets go: by age, by number, after a copy was written, and never of what changed meanwhile."""

from __future__ import annotations

import pytest
from django.db import DatabaseError

from machines.conf.server_share import OVERHEAD, ServerShare
from machines.engine import UnknownInstance
from machines.engine.instances.retirement import Retirement
from machines.instances.archive.sql import SqlArchive
from machines.instances.archive.store import NoArchive, get_archive, open_archived
from machines.models import ArchivedInstance, ArchiveTotal
from machines.retention import duty as module
from machines.retention.duty import RetentionDuty
from tests.configuration import configure
from tests.retention.conftest import DAY, archived, run


def left(engine) -> list[str]:
    return sorted(instance.id for instance in engine.find("parcel"))


def test_without_a_bound_all_is_kept(engine, duty, ship):
    ship("a", ago=4000 * DAY)
    run(duty)
    assert (left(engine), archived()) == (["a"], [])


def test_finished_instances_go_by_age_and_are_archived_first(engine, duty, ship):
    ship("old", retain="1d")
    ship("young", ago=DAY // 2, retain="1d")
    instance, steps = engine.get("parcel", "old"), engine.history("parcel", "old")
    engine.create("parcel", "open", now=1)
    run(duty)
    assert (left(engine), archived(), duty.gone) == (["open", "young"], ["old"], 1)
    record = get_archive().find("parcel", "old")
    assert (record.state, record.version, record.revision, record.actor) == ("Shipped", 1, 3, "ann")
    assert (record.created, record.finished) == (instance.created, instance.entered)
    restored, told = engine.retirement().decode(record.restore())
    assert (restored.data, restored.configuration, told) == (instance.data, ["Shipped"], steps)


def test_they_go_by_number_the_oldest_first(engine, duty, ship):
    for number in range(5):
        ship(f"i{number}", ago=DAY - number, retain={"most": 2})
    run(duty)
    assert (left(engine), archived()) == (["i3", "i4"], ["i0", "i1", "i2"])


def test_the_installation_bounds_machines_that_say_nothing(engine, duty, ship, settings):
    configure(settings, RETAIN="finished=1d")
    ship("a")
    run(duty)
    assert left(engine) == []
    ship("b", retain="3d")
    run(duty)
    assert left(engine) == ["b"]


def test_machines_of_the_product_keep_what_they_need(engine, duty, settings):
    configure(settings, RETAIN="finished=0s")
    ends = {"id": "bulk", "initial": "a", "states": {"a": {"on": {"go": "b"}}, "b": {"type": "final"}}}
    engine.publish(ends)
    engine.create("bulk", "x", now=1)
    engine.fire("bulk", "x", "go", now=1)
    run(duty)
    assert engine.get("bulk", "x").done


@pytest.mark.parametrize("how", ["definition", "setting"])
def test_without_an_archive_they_go_without_a_copy(engine, duty, ship, settings, how):
    configure(settings, ARCHIVE="none" if how == "setting" else "sql")
    ship("a", retain={"finished": "1d", "archive": how == "setting"})
    run(duty)
    assert (left(engine), ArchivedInstance.objects.count()) == ([], 0)


def test_they_go_to_parquet_files(engine, duty, ship, settings, tmp_path):
    configure(settings, ARCHIVE=f"parquet:{tmp_path}")
    ship("a", "b", retain="1d")
    run(duty)
    assert (left(engine), archived(), ArchivedInstance.objects.count()) == ([], ["a", "b"], 0)
    instance, steps = open_archived("parcel", "a")
    assert (instance.state, instance.archived, len(steps)) == ("Shipped", True, 3)


class Broken(NoArchive):
    enabled = True

    def write(self, records):
        raise DatabaseError("away")


def test_while_the_archive_is_away_nothing_goes(engine, share, ship, caplog):
    ship("a", retain="1d")
    assert not RetentionDuty(engine, share=share, archive=Broken()).run_once()
    assert left(engine) == ["a"]
    assert "the archive cannot be written: away" in caplog.text


class Meddling(NoArchive):
    """Between the copy and the removal somebody repairs one, and the process ends."""

    enabled = True

    def __init__(self, engine, fault=None):
        self._engine, self._fault = engine, fault

    def write(self, records):
        get_archive().write(records)
        if self._fault:
            raise self._fault
        self._engine.force("parcel", "a", "New", actor="ann", reason="it came back")
        return len(records)


def test_one_that_was_reopened_between_copy_and_removal_stays(engine, share, ship):
    ship("a", "b", retain="1d")
    run(RetentionDuty(engine, share=share, archive=Meddling(engine)))
    assert left(engine) == ["a"]
    assert engine.get("parcel", "a").state == "New"


def test_after_a_crash_between_copy_and_removal_the_archive_has_each_once(engine, share, duty, ship):
    ship("a", "b", retain="1d")
    with pytest.raises(KeyboardInterrupt):
        RetentionDuty(engine, share=share, archive=Meddling(engine, KeyboardInterrupt())).run_once()
    assert (left(engine), archived()) == (["a", "b"], ["a", "b"])
    run(duty)
    assert (left(engine), archived()) == ([], ["a", "b"])
    total = ArchiveTotal.objects.get(machine="parcel")
    assert (total.instances, total.bytes) == (2, sum(len(row.body) for row in ArchivedInstance.objects.all()))


def test_several_partitions_are_walked(engine, redis_url, prefix, share, ship):
    from machines.engine import Engine

    spread = Engine.from_url(redis_url, prefix=prefix, partitions=4)
    from tests.retention.conftest import parcel

    spread.publish(parcel(retain={"most": 3}))
    for number in range(20):
        spread.create("parcel", f"i{number:02}", now=number + 1)
        spread.fire("parcel", f"i{number:02}", "drop", now=number + 1)
    run(RetentionDuty(spread, share=share))
    assert sorted(instance.id for instance in spread.find("parcel")) == ["i17", "i18", "i19"]
    assert len(archived()) == 17
    spread.client.close()


def test_more_than_one_batch(engine, duty, ship, share):
    ship(*(f"i{number:03}" for number in range(230)), retain="1d")
    run(duty)
    assert (left(engine), len(archived()), duty.gone) == ([], 230, 230)
    assert share.spent > 0


def test_long_histories_come_in_small_reads(engine, duty, ship, monkeypatch):
    ship(*(f"i{number}" for number in range(7)), retain="1d", history=10_000)
    monkeypatch.setattr(module, "MAX_STEPS", 9)
    sizes: list[int] = []
    write = SqlArchive.write
    monkeypatch.setattr(SqlArchive, "write", lambda self, some: (sizes.append(len(some)), write(self, some))[1])
    run(duty)
    assert (left(engine), sizes) == ([], [4, 3])


def test_dead_jobs_go_by_age(engine, duty):
    busy = {"invoke": {"src": "work", "queue": "work", "retry": {"attempts": 1}, "onError": "Failed"}}
    engine.publish(
        {"id": "errand", "initial": "Busy", "retain": {"dead": "1d"}, "states": {"Busy": busy, "Failed": {"on": {}}}}
    )
    now = engine.emitted_logs().now()
    for src, at in (("old", now - 2 * DAY), ("young", now - 1000)):
        engine.enqueue("errand", src, queue="work", attempts=1, now=at)
        (job,) = engine.take("errand", "work", "w", now=at)
        engine.fail(job, "broken", kind="Error", now=at)
    assert [job.src for job in engine.jobs("errand", "work", place="dead")] == ["young", "old"]
    run(duty)
    assert [job.src for job in engine.jobs("errand", "work", place="dead")] == ["young"]


def test_logs_are_cut_at_their_age(engine, duty, ship, monkeypatch):
    ship("a", retain={"log": "2d"})
    cuts, trim = [], Retirement.trim_log
    monkeypatch.setattr(Retirement, "trim_log", lambda *given: cuts.append(given[2]) or trim(*given))
    begun = engine.emitted_logs().now()
    run(duty)
    assert cuts
    assert all(begun - 2 * DAY <= cut <= engine.emitted_logs().now() - 2 * DAY for cut in cuts)


def test_it_keeps_to_a_tenth_of_the_time_of_the_server():
    now, rested = [100.0], []

    def sleep(seconds: float) -> None:
        rested.append(seconds)
        now[0] += seconds

    share = ServerShare(0.1, clock=lambda: now[0], sleep=sleep)
    share.spend(1000)
    now[0] += 0.002
    share.spend(1000)
    assert rested == pytest.approx([0.010 * OVERHEAD, 0.010 * OVERHEAD - 0.002])
    now[0] += 50
    share.spend(1000)  # a long pause is no credit for a burst
    share.spend(200_000)
    assert sum(rested[2:]) == pytest.approx((0.01 + 2.0) * OVERHEAD - 1.0, abs=0.02)


def test_an_instance_that_went_is_unknown_to_the_engine(engine, duty, ship):
    ship("a", retain="1d")
    run(duty)
    with pytest.raises(UnknownInstance):
        engine.get("parcel", "a")
    assert engine.create("parcel", "a").revision == 1
