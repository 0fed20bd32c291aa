"""The engine repeats by itself what is safe to repeat, within the time of its caller, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest
import redis

from machines.conf.server import Server
from machines.engine import AsyncEngine, BadInput, Engine, EngineUnavailable, retry_for
from machines.engine.connection import retries as module
from machines.engine.connection.retries import Retries, retry_methods
from tests.cases import for_each
from tests.engine.builders import counter, door, publish
from tests.faults.proxy import Fault, Proxy
from tests.installation.processes import eventually

LONG = 60.0  # seconds: more than any server takes to start


class Clock:
    """Seconds that pass in pauses only."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(module.waiting, "pause", clock.pause)
    return clock


@retry_methods
class Part:
    """Its calls meet these faults, one after the other, and then succeed."""

    def __init__(self, *faults: EngineUnavailable, seconds: float = 5.0) -> None:
        self._retries = Retries(seconds)
        self.faults = list(faults)
        self.calls = 0

    def write(self, *, key: str | None = None) -> int:
        return self._meet(writes=True)

    def read(self) -> int:
        return self._meet(writes=False)

    def write_twice(self) -> int:
        module.note_change()
        return self.write()

    def ping(self) -> int:
        return self._meet(writes=False)

    def _meet(self, *, writes: bool) -> int:
        self.calls += 1
        if self.faults:
            fault = self.faults.pop(0)
            module.note_answers(writes, [ConnectionError()] if not fault.retry_safe else [])
            raise fault
        return self.calls


def safe(node: str = "") -> EngineUnavailable:
    return EngineUnavailable("it was not sent", retry_safe=True, node=node)


def unknown() -> EngineUnavailable:
    return EngineUnavailable("it may have happened")


def test_what_was_not_carried_out_is_repeated(clock):
    assert Part(safe(), safe()).write() == 3
    assert 0 < clock.pauses[0] < clock.pauses[1]


def test_a_write_without_a_key_whose_outcome_is_unknown_is_not(clock):
    part = Part(unknown())
    with pytest.raises(EngineUnavailable) as caught:
        part.write()
    assert (part.calls, caught.value.retry_safe, clock.pauses) == (1, False, [])


def test_with_a_key_and_in_a_read_it_is(clock):
    assert Part(unknown()).write(key="k") == 2
    assert Part(unknown()).read() == 2


def test_an_error_of_a_later_part_is_not_safe_where_an_earlier_one_has_happened(clock):
    part = Part(safe())
    with pytest.raises(EngineUnavailable, match="earlier parts of the call have happened") as caught:
        part.write_twice()
    assert (part.calls, caught.value.retry_safe) == (1, False)


def test_no_attempt_begins_after_the_deadline_and_the_last_error_is_raised(clock):
    begun, part = clock.now, Part(*(safe() for _ in range(1000)))
    with pytest.raises(EngineUnavailable) as caught:
        part.write()
    assert caught.value.retry_safe
    assert begun + 4 < clock.now < begun + 5
    assert part.calls == len(clock.pauses) + 1


def test_the_error_of_an_unknown_attempt_stands_whatever_came_after(clock):
    part = Part(unknown(), *(safe() for _ in range(1000)))
    with pytest.raises(EngineUnavailable, match="may have happened") as caught:
        part.write(key="k")
    assert not caught.value.retry_safe


def test_without_time_nothing_is_repeated(clock):
    for part in (Part(safe(), seconds=0), Part(safe(), seconds=5)):
        with pytest.raises(EngineUnavailable), retry_for(0):
            part.write()
        assert (part.calls, clock.pauses) == (1, [])


def test_a_caller_gives_its_own_time(clock):
    part = Part(*(safe() for _ in range(1000)))
    with pytest.raises(EngineUnavailable), retry_for(60):
        part.write()
    assert clock.now > 150


def test_pings_are_answered_as_it_is_now(clock):
    part = Part(safe())
    with pytest.raises(EngineUnavailable):
        part.ping()
    assert clock.pauses == []


def test_a_node_that_stayed_away_holds_nobody_else_until_it_has_not_failed_for_a_while(clock):
    part = Part(*(safe("a:1") for _ in range(1000)))
    with pytest.raises(EngineUnavailable):
        part.write()
    given_up = len(clock.pauses)
    for _ in range(3):
        clock.now += module.GIVEN_UP - 1
        with pytest.raises(EngineUnavailable):
            part.write()
    assert len(clock.pauses) == given_up
    part.faults = [safe("b:1")]
    part.write()
    assert len(clock.pauses) == given_up + 1, "another node has its own time"
    clock.now += module.GIVEN_UP
    part.faults = [safe("a:1")]
    part.write()
    assert len(clock.pauses) == given_up + 2


@for_each("seconds", [-1, float("nan"), True, "5", 3601])
def test_a_time_that_makes_no_sense_is_refused(seconds):
    with pytest.raises(BadInput, match="retry_for"):
        Engine.from_url("redis://localhost", retry_for=seconds)
    with pytest.raises(BadInput, match="retry_for"):
        AsyncEngine.from_url("redis://localhost", retry_for=seconds)


# A real server


@pytest.fixture
def lasting(tmp_path, program_of_this_run):
    with Server(tmp_path / "server", program=program_of_this_run) as server:
        yield server


def end(server: Server) -> None:
    with redis.Redis.from_url(server.url) as client, contextlib.suppress(redis.ConnectionError):
        client.shutdown()
    eventually(lambda: not server.running, "the server ends")


def start_again(server: Server, begun: threading.Event) -> threading.Thread:
    """Start a server once somebody has been waiting for it."""

    def start() -> None:
        begun.wait()
        server.revive()

    thread = threading.Thread(target=start)
    thread.start()
    return thread


@pytest.fixture
def paused(monkeypatch) -> threading.Event:
    """Set by the first pause."""
    begun, pause = threading.Event(), module.waiting.pause

    def note(seconds: float) -> None:
        begun.set()
        pause(seconds)

    monkeypatch.setattr(module.waiting, "pause", note)
    return begun


def test_calls_go_on_when_a_server_that_was_stopped_is_started_again(lasting, paused):
    engine = Engine.from_url(lasting.url, retry_for=LONG)
    publish(engine, counter(), "x", "y")
    end(lasting)
    starting = start_again(lasting, paused)
    assert engine.fire("counter", "x", "add").revision == 2
    starting.join()
    assert engine.history("counter", "x")[0].revision == 2
    engine.client.close()


def test_an_async_engine_leaves_its_loop_free_meanwhile(lasting, paused):
    async def run() -> tuple[list[int], int]:
        async with AsyncEngine.from_url(lasting.url, retry_for=LONG) as engine:
            await engine.publish(counter())
            for number in range(4):
                await engine.create("counter", f"i{number}")
            end(lasting)
            starting = start_again(lasting, paused)
            ticks = 0
            calls = [asyncio.create_task(engine.fire("counter", f"i{number}", "add")) for number in range(4)]
            while not all(call.done() for call in calls):
                ticks += 1
                await asyncio.sleep(0.001)
            starting.join()
            return [call.result().revision for call in calls], ticks

    versions, ticks = asyncio.run(run())
    assert versions == [2] * 4
    assert ticks > 1


@pytest.mark.parametrize("keyed", [True, False])
def test_a_reply_that_is_lost_is_asked_for_again_with_a_key_only(lasting, keyed):
    with Proxy(lasting.url) as proxy:
        engine = Engine.from_url(proxy.url, retry_for=LONG)
        publish(engine, counter(), "x")
        proxy.arm(b"sb_fire", Fault.LOST_REPLY)
        if keyed:
            found = engine.fire("counter", "x", "add", key="k")
            assert (found.revision, found.outcome.replayed) == (2, True)
        else:
            with pytest.raises(EngineUnavailable) as caught:
                engine.fire("counter", "x", "add")
            assert not caught.value.retry_safe
        assert proxy.struck == 1
        assert engine.get("counter", "x").revision == 2
        engine.client.close()


def test_a_batch_repeats_what_is_safe_of_it(lasting, paused):
    engine = Engine.from_url(lasting.url, retry_for=LONG)
    publish(engine, counter(), "x", "y")
    end(lasting)
    starting = start_again(lasting, paused)
    found = engine.fire_many(call for call in [("counter", "x", "add"), ("counter", "y", "add")])
    starting.join()
    assert [one.revision for one in found] == [2, 2]
    engine.client.close()


def test_an_engine_at_once_and_its_owner_share_connections_but_not_time(lasting):
    engine = Engine.from_url(lasting.url, retry_for=LONG)
    publish(engine, door(), "x")
    end(lasting)
    with pytest.raises(EngineUnavailable) as caught:
        engine.at_once().fire("door", "x", "open")
    assert caught.value.retry_safe
    assert engine.at_once().client is engine.client
    engine.client.close()
