"""An index that is declared later is filled by whichever worker looks first."""

from __future__ import annotations

from machines.engine import Engine
from machines.worker.duties.engine_duties import IndexBuilder
from tests.engine.builders import door, publish
from tests.engine.search.indexed import every


def test_a_publish_that_adds_an_index_is_filled_once(engine: Engine, redis_url, prefix):
    publish(engine, door(), *(f"i{n}" for n in range(7)))
    indexer = IndexBuilder(engine)
    assert indexer.run_once() is False, "nothing is missing"
    publish(engine, door(index=["instance.id"]))
    assert engine.index_progress("door").fields == ["instance.id"]
    other = Engine.from_url(redis_url, prefix=prefix)
    engine.client.set(engine.keys.partition("door").filling, "3/7", px=60_000)  # another worker is at it
    assert IndexBuilder(other).run_once() is False
    assert other.index_progress("door").percent == 42
    engine.client.delete(engine.keys.partition("door").filling)
    assert indexer.run_once() is True
    assert len(every(engine, "door", id_prefix="i")) == 7
    assert indexer.run_once() is False
    assert engine.index_progress("door") is None
    other.client.close()
