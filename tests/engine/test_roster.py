"""The workers that are alive, as their own rows tell."""

import time

from machines.engine import WorkerRow


def alive(id, **facts):
    now = round(time.time() * 1000)
    return WorkerRow(id, "host", 7, ["errand/work"], 0, now, now, **facts)


def test_a_row_is_read_as_it_was_written_until_its_worker_leaves(engine):
    row = alive("w1", version="1.0", note="no handler here for é")
    engine.beat(row)
    assert engine.workers() == [row]
    engine.leave("w1")
    assert engine.workers() == []


def test_a_row_that_is_none_hides_no_other(engine):
    for id, fields in {"half": {"id": '"half"'}, "junk": {"id": "not JSON"}}.items():
        engine.client.hset(engine.keys.worker(id), mapping=fields)
        engine.client.zadd(engine.keys.workers, {id: time.time() * 1000})
    engine.beat(alive("w1"))
    assert [row.id for row in engine.workers()] == ["w1"]
