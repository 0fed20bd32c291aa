"""Workers: a row for each that it renews itself, gone soon after it stops."""

import time

import pytest

from machines.engine import WorkerInfo, errors
from tests.engine.dumps import keys_left


def row(id="host:1", **given):
    now = round(time.time() * 1000)
    return WorkerInfo(**({"id": id, "host": "host", "pid": 1, "queues": ["m/work"], "in_hand": 2,
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
    engine.beat(row())
    assert 0 < engine.client.pttl(engine.keys.worker("host:1")) <= 15_000
    engine.client.delete(engine.keys.worker("host:1"))
    assert engine.workers() == []
    assert keys_left(engine) == set()


def test_a_row_keeps_the_servers_time_whatever_the_workers_clock_says(engine):
    day = 24 * 3600 * 1000
    now = round(time.time() * 1000) + day
    engine.beat(row(started=now - 5000, seen=now, holding=[{"id": "0-1", "since": now - 1000}]))
    (worker,) = engine.workers()
    seconds, _ = engine.client.time()
    assert abs(worker.seen - seconds * 1000) < day / 2
    assert (worker.seen - worker.started, worker.seen - worker.holding[0]["since"]) == (5000, 1000)


def test_a_row_of_an_earlier_release_with_less_in_it_still_reads(engine):
    engine.beat(row())
    engine.client.hdel(engine.keys.worker("host:1"), "status", "memory", "concurrency", "holding", "done", "failed")
    (worker,) = engine.workers()
    assert (worker.status, worker.memory, worker.holding) == ("working", 0, [])


def test_an_order_is_read_with_the_next_beat(engine):
    assert engine.beat(row()) is None
    engine.direct("host:1", "quiet", actor="alice", reason="a deploy")
    order = engine.beat(row())
    assert (order["order"], order["actor"], order["reason"]) == ("quiet", "alice", "a deploy")
    assert 0 < engine.client.pttl(engine.keys.order("host:1")) <= 60_000
    engine.leave("host:1")
    assert keys_left(engine) == set()


def test_an_order_that_is_none_is_passed_over(engine):
    engine.client.set(engine.keys.order("host:1"), '{"order": "dance"}')
    assert engine.beat(row()) is None


@pytest.mark.parametrize(("worker", "order", "reason", "error"), [
    ("host:1", "dance", "why not", errors.BadInput),
    ("host:1", "stop", "", errors.BadInput),
    ("host:2", "stop", "it is gone", errors.LookupFailed),
])  # fmt: skip
def test_an_order_nobody_can_obey_is_refused(engine, worker, order, reason, error):
    engine.beat(row())
    with pytest.raises(error):
        engine.direct(worker, order, actor="alice", reason=reason)


def test_a_row_of_a_later_release_with_more_in_it_still_reads(engine):
    engine.beat(row())
    engine.client.hset(engine.keys.worker("host:1"), "mood", '"fine"')
    assert [worker.id for worker in engine.workers()] == ["host:1"]
