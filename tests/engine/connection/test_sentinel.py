"""A service that Sentinels watch: calls follow the master by themselves, and none is sent twice."""

import contextlib
import threading
import time

import pytest

from machines.engine import Engine, EngineUnavailable, SignalboxError
from machines.engine.connection.connection_cache import get_cache
from tests.engine.builders import counter, publish

from . import sentinels
from .clusters import eventually

pytestmark = [pytest.mark.redis, pytest.mark.faults]

THREADS = 4


@pytest.fixture(scope="module")
def watched(tmp_path_factory, program_of_this_run):
    with sentinels.running(tmp_path_factory.mktemp("watched"), program_of_this_run) as watched:
        yield watched


class Load:
    """Threads that add one to a counter of their own, as fast as they can, and note what came of it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._stop = threading.Event()
        self.acknowledged = [0] * THREADS
        self.unknown = [0] * THREADS  # calls that may or may not have happened
        self.errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(THREADS)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        while not self._stop.is_set():
            try:
                self._engine.fire("counter", f"c{number}", "add")
                self.acknowledged[number] += 1
            except SignalboxError as error:
                self.errors.append(error)
                self.unknown[number] += 1
                time.sleep(0.01)

    def wait_for_more(self) -> None:
        """Wait until every thread had 20 more steps acknowledged."""
        wanted = [count + 20 for count in self.acknowledged]
        eventually(lambda: all(count >= least for count, least in zip(self.acknowledged, wanted, strict=True)))


def counting():
    """A counter without a guard."""
    definition = counter()
    definition["states"]["On"]["on"]["add"] = {"actions": [{"set": {"n": "n + 1"}}]}
    return definition


def test_a_failover_under_load_is_followed_and_loses_nothing_that_was_replicated(watched):
    engine = Engine.from_url(watched.url)
    publish(engine, counting(), *(f"c{number}" for number in range(THREADS)))
    with Load(engine) as load:
        load.wait_for_more()
        first = watched.master()
        with watched.client(first) as client:
            before = list(load.acknowledged)
            client.set("mark", 1)
            assert client.wait(1, 60_000) == 1, "the replica has every step that was acknowledged before"
        watched.kill(first)
        eventually(lambda: watched.master() != first)
        load.wait_for_more()  # without a new engine
        assert not get_cache(engine.client.connection_pool)._idle or all(
            connection.port == watched.master() for connection in get_cache(engine.client.connection_pool)._idle
        )
    assert {type(error) for error in load.errors} <= {EngineUnavailable}
    for number in range(THREADS):
        held = engine.get("counter", f"c{number}").data["n"]
        assert held >= before[number] + 20
        assert held <= load.acknowledged[number] + load.unknown[number], "no call was sent twice"
    engine.client.close()


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
