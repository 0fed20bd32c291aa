"""A service that Sentinels watch: calls follow the master by themselves, and none is sent twice."""

import contextlib

import pytest

from machines.engine import Engine, EngineUnavailable
from machines.engine.connection.connection_cache import get_cache
from tests.engine.aio.awaited import AwaitedEngine
from tests.engine.builders import publish

from . import sentinels
from .clusters import eventually
from .load import Load, counting

pytestmark = [pytest.mark.redis, pytest.mark.faults]

THREADS = 4
IDS = [f"c{number}" for number in range(THREADS)]


@pytest.fixture(scope="module")
def watched(tmp_path_factory, program_of_this_run):
    with sentinels.running(tmp_path_factory.mktemp("watched"), program_of_this_run) as watched:
        yield watched


def test_a_failover_under_load_is_followed_and_loses_nothing_that_was_replicated(watched):
    engine = Engine.from_url(watched.url)
    publish(engine, counting(), *IDS)
    awaited = AwaitedEngine(watched.url, engine)
    assert awaited.get("counter", IDS[0]).id == IDS[0]
    with Load(engine, IDS) as load:
        load.wait_for_more()
        first = watched.master()
        with watched.client(first) as client:
            before = dict(load.acknowledged)
            client.set("mark", 1)
            assert client.wait(1, 60_000) == 1, "the replica has every step that was acknowledged before"
        watched.kill(first)
        eventually(lambda: watched.master() != first)
        load.wait_for_more()  # without a new engine
        eventually(lambda: goes_through(awaited))  # with asyncio, too
        assert not get_cache(engine.client.connection_pool)._idle or all(
            connection.port == watched.master() for connection in get_cache(engine.client.connection_pool)._idle
        )
    awaited.close()
    assert {type(error) for error in load.errors} <= {EngineUnavailable}
    for id in IDS:
        held = engine.get("counter", id).data["n"]
        assert held >= before[id] + 20
        assert held <= load.acknowledged[id] + load.unknown[id], "no call was sent twice"
    engine.client.close()


def goes_through(awaited: AwaitedEngine) -> bool:
    """Tell whether a call that writes reaches a master."""
    try:
        return bool(awaited.create("counter").id)
    except EngineUnavailable:
        return False


def test_no_sentinel_and_no_master_are_unavailable(watched):
    for url in (f"redis+sentinel://127.0.0.1:1/{sentinels.SERVICE}", watched.url.replace("/main", "/other")):
        engine = Engine.from_url(url)
        with pytest.raises(EngineUnavailable, match="No master found"):
            engine.machines()
        with contextlib.suppress(EngineUnavailable):
            engine.client.close()


def test_a_wrong_account_of_the_sentinels_is_unavailable_without_its_password(watched):
    engine = Engine.from_url(watched.url.replace(sentinels.WATCHWORD, "hunter2"))
    with pytest.raises(EngineUnavailable) as caught:
        engine.machines()
    assert "hunter2" not in str(caught.value)
