"""The number of the data layout: who checks it, and who raises it."""

import pytest

from machines.engine import Engine, data_layout, errors
from tests.engine.builders import door, publish


def test_data_of_before_there_were_numbers_get_one_before_the_library_is_loaded(engine):
    assert publish(engine, door(), "x") == "door"
    assert engine.client.hgetall(engine.keys.layout) == {
        "number": str(data_layout.LAYOUT),
        "reader": str(data_layout.READER),
    }
    assert engine.fire("door", "x", "open").state == "Open"


def test_a_newer_layout_that_this_release_can_read_is_worked_with(engine, redis_url):
    engine.client.hset(engine.keys.layout, mapping={"number": data_layout.LAYOUT + 3, "reader": data_layout.LAYOUT})
    assert publish(engine, door(), "x") == "door"
    assert engine.client.hget(engine.keys.layout, "number") == str(data_layout.LAYOUT + 3)


def test_one_that_it_cannot_read_is_refused_at_the_first_call(redis_url, prefix, engine):
    publish(engine, door(), "x")
    engine.client.hset(engine.keys.layout, mapping={"number": data_layout.LAYOUT + 3, "reader": data_layout.LAYOUT + 2})
    late = Engine.from_url(redis_url, prefix=prefix)
    for _ in range(2):
        with pytest.raises(
            errors.EngineFault, match=r"needs a release that knows layout \d+; .*nothing was changed"
        ) as caught:
            late.fire("door", "x", "open")
        assert caught.value.code == "SB512"
    late.client.close()
    assert engine.get("door", "x").state == "Shut"
