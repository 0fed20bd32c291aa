"""Calls that are cancelled or time out, and loops that go on meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal

import pytest
import redis

from machines.engine import AsyncEngine, EngineUnavailable
from machines.engine.connection import waiting
from tests.engine.builders import door, errand, machine

COUNT = machine("tally", {"On": {"on": {"add": {"actions": {"set": {"n": "n + 1"}}}}}}, context={"n": 0})
CALLS = {
    "ping": lambda e: e.ping(),
    "publish": lambda e: e.publish(door()),
    "machines": lambda e: e.machines(),
    "create": lambda e: e.create("errand"),
    "fire": lambda e: e.fire("errand", "x", "start"),
    "fire with replicas": lambda e: e.fire("errand", "x", "start", replicas=1),
    "fire_many": lambda e: e.fire_many([("errand", "x", "start")]),
    "find": lambda e: e.find("errand"),
    "survey": lambda e: e.survey(),
    "take": lambda e: e.take("errand", "work", "w"),
    "tick": lambda e: e.tick(),
    "load_library": lambda e: e.load_library(),
    "check_partitions": lambda e: e.check_partitions(),
    "workers": lambda e: e.workers(),
    "ends of logs": lambda e: e.emitted_logs().ends(),
}


class Stopped:
    """A server that is stopped by a signal: connections stay open and nothing answers."""

    def __init__(self, server) -> None:
        with redis.Redis.from_url(server.url) as client:
            self._process = int(client.info("server")["process_id"])

    def __enter__(self) -> None:
        os.kill(self._process, signal.SIGSTOP)

    def __exit__(self, *error: object) -> None:
        os.kill(self._process, signal.SIGCONT)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("connected", [True, False], ids=["connected", "first call"])
async def test_no_call_holds_up_the_loop_while_the_server_is_silent(own_server, call, connected):
    async with AsyncEngine.from_url(own_server.url, socket_timeout=120, socket_connect_timeout=120) as engine:
        if connected:
            await engine.publish(errand())
            await engine.create("errand", "x")
        with Stopped(own_server):
            under_way = asyncio.create_task(CALLS[call](engine))
            for _ in range(30):  # the loop turns while the call waits
                await asyncio.sleep(0.001)
            assert not under_way.done()
        await asyncio.wait([under_way])


async def test_a_cancelled_call_leaves_the_connection_in_order(relayed, relay, engine):
    await relayed.publish(COUNT)
    for number in range(20):
        await relayed.create("tally", f"x{number}")
    calls = [asyncio.create_task(relayed.fire("tally", f"x{number % 20}", "add")) for number in range(200)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for call in calls[::3]:
        call.cancel()
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(end, asyncio.CancelledError) for end in ends[::3])
    for number, end in enumerate(ends):
        if number % 3:
            assert end.id == f"x{number % 20}", "the answer to another call"
    done = [(await relayed.get("tally", f"x{number}")).data["n"] for number in range(20)]
    answered = [sum(1 for n in range(number, 200, 20) if n % 3) for number in range(20)]
    assert all(most >= count >= least for most, count, least in zip([10] * 20, done, answered, strict=True))


async def test_a_call_that_times_out_may_have_happened_and_its_key_tells(own_server):
    async with AsyncEngine.from_url(own_server.url, socket_timeout=120) as engine:
        await engine.publish(COUNT)
        await engine.create("tally", "x")
        with Stopped(own_server), pytest.raises(TimeoutError):
            await asyncio.wait_for(engine.fire("tally", "x", "add", key="once"), 0.05)
        assert (await engine.fire("tally", "x", "add", key="once")).data == {"n": 1}
        assert (await engine.get("tally", "x")).revision == 2


async def test_a_silent_server_is_unavailable_after_the_timeout_for_every_call(own_server, own_engine):
    own_engine.load_library()  # which may take longer than the timeout
    async with AsyncEngine.from_url(own_server.url, socket_timeout=0.2, socket_connect_timeout=0.2) as engine:
        await engine.publish(COUNT)
        await engine.create("tally", "x")
        with Stopped(own_server):
            calls = [engine.fire("tally", "x", "add"), engine.get("tally", "x"), engine.machines(), engine.ping()]
            for end in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(end, EngineUnavailable)
                assert "may or may not have happened" in str(end)
        assert (await engine.fire("tally", "x", "add")).state == "On"


async def test_an_answer_that_is_lost_is_unavailable_and_the_next_call_works(relayed, relay):
    await relayed.publish(COUNT)
    await relayed.create("tally", "x")
    relay.break_next()
    for end in await asyncio.gather(*(relayed.fire("tally", "x", "add") for _ in range(5)), return_exceptions=True):
        assert isinstance(end, EngineUnavailable)
        assert not end.retry_safe
    assert 1 <= relay.sent(b"sb_fire") <= 5, "no call is sent twice"
    relay.mend()
    assert (await relayed.get("tally", "x")).data["n"] <= 5
    await relayed.fire("tally", "x", "add")


async def test_an_outage_is_unavailable_and_over_when_the_server_is_back(tmp_path, program_of_this_run):
    from machines.conf.server import Server

    with Server(tmp_path / "s", program=program_of_this_run) as server:
        async with AsyncEngine.from_url(server.url) as engine:
            await engine.publish(COUNT)
            await engine.create("tally", "x")
            with redis.Redis.from_url(server.url) as client, contextlib.suppress(redis.ConnectionError):
                client.shutdown(nosave=False)
            with pytest.raises(EngineUnavailable):
                await engine.fire("tally", "x", "add")
            with pytest.raises(EngineUnavailable) as caught:
                await engine.fire("tally", "x", "add")
            assert caught.value.retry_safe, "it was not sent"
            server.revive()
            assert (await engine.fire("tally", "x", "add")).data == {"n": 1}


async def test_a_task_that_is_cancelled_while_it_waits_for_a_lock_leaves_it_to_the_next(awaited):
    lock = waiting.Lock()
    order: list[str] = []

    def hold(name: str, seconds: float) -> None:
        with lock:
            order.append(name)
            waiting.pause(seconds)

    first = asyncio.create_task(waiting.run(hold, "first", 0.05))
    await asyncio.sleep(0)
    second = asyncio.create_task(waiting.run(hold, "second", 0))
    third = asyncio.create_task(waiting.run(hold, "third", 0))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([first, second, third])
    assert order == ["first", "third"]
    assert second.cancelled()
    assert lock.acquire(blocking=False)


async def test_a_first_call_that_is_cancelled_leaves_the_connecting_to_the_others(redis_url, prefix):
    async with AsyncEngine.from_url(redis_url, prefix=prefix) as engine:
        calls = [asyncio.create_task(engine.machines()) for _ in range(20)]
        for turns in range(10):  # wherever it is: in the thread, in the handshake, while it waits for its turn
            await asyncio.sleep(0)
            calls[turns].cancel()
        ends = await asyncio.gather(*calls, return_exceptions=True)
        assert ends[10:] == [{}] * 10
        assert await engine.machines() == {}


async def test_a_thread_and_a_task_share_a_lock():
    lock = waiting.Lock()
    lock.acquire()
    waits = asyncio.create_task(waiting.run(lock.acquire))
    await asyncio.sleep(0.01)
    assert not waits.done()
    await asyncio.to_thread(lock.release)
    assert await waits


async def test_a_coroutine_that_is_closed_while_it_waits_ends_quietly(awaited):
    await awaited.publish(COUNT)
    for _ in range(3):
        call = awaited.machines()
        call.send(None)  # it waits for Redis now
        call.close()
        del call
    gc.collect()
    assert await awaited.machines() == {"tally": 1}


async def test_closing_ends_the_calls_under_way(own_server):
    engine = AsyncEngine.from_url(own_server.url, socket_timeout=120)
    await engine.publish(COUNT)
    with Stopped(own_server):
        under_way = asyncio.create_task(engine.machines())
        await asyncio.sleep(0.01)
        await engine.aclose()
        with pytest.raises(EngineUnavailable):
            await under_way


async def test_a_forked_child_leaves_the_connection_of_its_parent_alone(awaited, redis_url, prefix):
    await awaited.publish(COUNT)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            gc.collect()
            code = 0 if _use_in_child(redis_url, prefix) == {"tally": 1} else 2
        finally:
            os._exit(code)
    status = await asyncio.to_thread(os.waitpid, child, 0)
    assert os.waitstatus_to_exitcode(status[1]) == 0
    assert await awaited.machines() == {"tally": 1}


def _use_in_child(url: str, prefix: str) -> dict[str, int]:
    """Use an engine of its own on a loop of its own, in a process whose parent was in a loop when it forked."""
    asyncio.events._set_running_loop(None)

    async def read() -> dict[str, int]:
        async with AsyncEngine.from_url(url, prefix=prefix) as engine:
            return await engine.machines()

    return asyncio.run(read())
