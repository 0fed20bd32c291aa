"""A move of a fleet whose instances change their states all the time: none is left out."""

from __future__ import annotations

import threading

from machines.engine import Engine, Fire

FLIP = {
    "id": "flip",
    "initial": "here",
    "states": {"here": {"on": {"go": "there"}}, "there": {"on": {"go": "here"}}},
}


def test_instances_that_never_rest_are_moved_too(engine, redis_url, prefix):
    engine.publish(FLIP)
    ids = [f"f{number:03}" for number in range(600)]
    for id in ids:
        engine.create("flip", id)
    engine.publish(FLIP | {"description": "the second"})
    over = threading.Event()

    def fire():
        other = Engine.from_url(redis_url, prefix=prefix)
        while not over.is_set():
            other.fire_many([Fire("flip", id, "go") for id in ids[:40]])
        other.client.close()

    busy = threading.Thread(target=fire)
    busy.start()
    try:
        moved = engine.migrate(engine.plan("flip", 2), actor="ann", reason="a test")
    finally:
        over.set()
        busy.join()
    assert (moved.moved, moved.refused, moved.kept, moved.already) == (600, [], 0, 0)
    assert {found.version for found in engine.get_many("flip", ids)} == {2}
