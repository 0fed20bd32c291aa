"""Workers: a row for each that it renews itself, gone soon after it stops."""

import time

from machines.engine import WorkerRow
from tests.engine.dumps import keys_left


def row(id="host:1", **given):
    now = round(time.time() * 1000)
    return WorkerRow(**({"id": id, "host": "host", "pid": 1, "queues": ["m/work"], "in_hand": 2,
                         "started": now - 5000, "seen": now, "version": "1.0", "note": "é"} | given))  # fmt: skip


def test_a_worker_that_beats_is_listed_with_all_it_said(engine):
    assert engine.workers() == []
    engine.beat(row())
    engine.beat(row("host:2", in_hand=0))
    engine.beat(row(in_hand=3))
    first, second = sorted(engine.workers(), key=lambda worker: worker.id)
    assert (first.in_hand, first.queues, first.note) == (3, ["m/work"], "é")
    assert second == row("host:2", in_hand=0, started=second.started, seen=second.seen)


def test_one_that_leaves_is_gone_at_once(engine):
    engine.beat(row())
    engine.leave("host:1")
    assert engine.workers() == []
    assert keys_left(engine) == set()


def test_one_that_died_is_gone_when_its_row_is_and_its_name_is_cleared_away(engine):
    engine.beat(row(seen=round(time.time() * 1000) - 60_000))
    assert 0 < engine.client.pttl(engine.keys.worker("host:1")) <= 15_000
    engine.client.delete(engine.keys.worker("host:1"))
    assert engine.workers() == []
    assert keys_left(engine) == set()


def test_a_row_of_a_later_release_with_more_in_it_still_reads(engine):
    engine.beat(row())
    engine.client.hset(engine.keys.worker("host:1"), "mood", '"fine"')
    assert [worker.id for worker in engine.workers()] == ["host:1"]
