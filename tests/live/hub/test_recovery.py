"""Redis goes away, hangs, comes back, or comes back as another."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis.exceptions import TimeoutError as RedisTimeoutError

from dashboard.live.hub.connections import HubConnections
from dashboard.live.hub.hub import Hub
from dashboard.live.limits import Limits
from machines.conf.server import Server
from machines.engine import Engine
from machines.engine.errors import SignalboxError
from machines.engine.keys import Keys
from tests.live.builders import GATE
from tests.live.conftest import Watcher, eventually

pytestmark = pytest.mark.redis
Watch = Callable[..., Watcher]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """One of the test's own, to be killed."""
    with Server(tmp_path / "server") as server:
        yield server


@pytest.fixture
def gate(server: Server) -> Iterator[Engine]:
    engine = Engine.from_url(server.url, prefix="t:")
    engine.publish(GATE)
    engine.create("gate", "north")
    yield engine
    engine.client.close()


@pytest.fixture
async def watcher(server: Server, gate: Engine, watch: Watch) -> Watcher:
    """Of the machine; whatever it needs to notice it notices soon."""
    limits = Limits(reconcile=0.2, reconcile_without_hints=0.2, deadline=0.3, backoff=0.2)
    watcher = watch("machine:gate", "instance:gate/north", hub=Hub(server.url, Keys("t:"), limits))
    await watcher.sees("machine:gate", counts={"Shut": 1, "Open": 0})
    await watcher.sees("instance:gate/north", state="Shut")
    return watcher


@pytest.fixture
async def watch(request: pytest.FixtureRequest):
    started: list[Watcher] = []

    def start(*topics: str, hub: Hub) -> Watcher:
        started.append(Watcher(hub))
        started[-1].watch(*topics)
        return started[-1]

    yield start
    for watcher in started:
        await watcher.leave()


def pid(engine: Engine) -> int:
    return int(engine.client.info("server")["process_id"])


async def kill(server: Server, engine: Engine) -> None:
    os.kill(pid(engine), signal.SIGKILL)
    await eventually(lambda: not server.running)
    server.stop()


async def state(watcher: Watcher, wanted: str) -> None:
    seen = len(watcher.screen.states)
    await watcher.until(lambda screen: wanted in screen.states[seen:])


async def test_a_killed_server_is_said_to_be_stale_and_recovers_by_snapshot(
    server: Server, gate: Engine, watcher: Watcher
) -> None:
    epoch = watcher.screen.marks["machine:gate"][0]
    await kill(server, gate)
    await state(watcher, "stale")
    await asyncio.to_thread(server.start)
    await asyncio.to_thread(gate.fire, "gate", "north", "open")
    await watcher.sees("machine:gate", counts={"Shut": 0, "Open": 1}, flow={"1:t1": 1})
    await watcher.sees("instance:gate/north", state="Open")
    assert watcher.screen.states[-1] == "live"
    assert watcher.screen.marks["machine:gate"][0] != epoch


async def test_under_load_it_ends_with_the_truth(server: Server, gate: Engine, watcher: Watcher) -> None:
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            for event in ("open", "shut"):
                try:
                    gate.fire("gate", "north", event)
                except SignalboxError:
                    stop.wait(0.01)

    load = asyncio.create_task(asyncio.to_thread(run))
    for _ in range(2):
        await asyncio.sleep(0.2)
        await kill(server, gate)
        await state(watcher, "stale")
        await asyncio.to_thread(server.start)
        await state(watcher, "live")
    stop.set()
    await load
    truth = await asyncio.to_thread(gate.live, "gate")
    await watcher.sees("machine:gate", counts=truth.counts, flow=truth.flow)


async def test_a_server_that_hangs_is_noticed_by_the_deadline(gate: Engine, watcher: Watcher) -> None:
    process = pid(gate)
    epoch = watcher.screen.marks["machine:gate"][0]
    os.kill(process, signal.SIGSTOP)
    try:
        await state(watcher, "stale")
    finally:
        os.kill(process, signal.SIGCONT)
    await state(watcher, "live")
    gate.fire("gate", "north", "open")
    await watcher.sees("machine:gate", counts={"Shut": 0, "Open": 1})
    assert watcher.screen.marks["machine:gate"][0] == epoch, "the same server goes on with its numbers"
    assert watcher.screen.kinds("machine:gate").count("snapshot") == 1


async def test_a_lost_connection_alone_is_made_good_without_a_new_epoch(gate: Engine, watcher: Watcher) -> None:
    epoch = watcher.screen.marks["machine:gate"][0]
    gate.client.client_kill_filter(_type="pubsub")
    await state(watcher, "live")
    gate.fire("gate", "north", "open")
    await watcher.sees("machine:gate", counts={"Shut": 0, "Open": 1})
    assert watcher.screen.marks["machine:gate"][0] == epoch


async def test_a_connection_that_does_not_close_in_time_leaves_no_other_open(server: Server, gate: Engine) -> None:
    before = len(gate.client.client_list())
    link = HubConnections(server.url, Keys("t:"), Limits(), print, lambda: None)
    await link.open()
    await link.read([])
    assert len(gate.client.client_list()) > before + 1

    async def late() -> None:
        raise RedisTimeoutError("Timed out closing connection")

    (subscriber,) = link._subscribers.values()
    subscriber._pubsub.aclose = late
    await link.close()
    await eventually(lambda: len(gate.client.client_list()) == before)


async def test_an_emptied_server_is_another_epoch(gate: Engine, watcher: Watcher) -> None:
    epoch = watcher.screen.marks["machine:gate"][0]
    gate.client.flushall()
    await watcher.sees("machine:gate", gone=True)
    await watcher.sees("instance:gate/north", gone=True)
    assert watcher.screen.marks["machine:gate"][0] != epoch
    gate.publish(GATE)
    await watcher.sees("machine:gate", counts={"Shut": 0, "Open": 0})


async def test_a_page_opened_while_redis_is_away_gets_its_snapshot_later(
    server: Server, gate: Engine, watch: Watch
) -> None:
    limits = Limits(deadline=0.3, backoff=0.2)
    hub = Hub(server.url, Keys("t:"), limits)
    await kill(server, gate)
    early = watch("machine:gate", hub=hub)
    await state(early, "stale")
    late = watch("machine:gate", hub=hub)
    await late.until(lambda screen: any(frame.get("code") == "SB606" for frame in screen.frames))
    assert late.screen.states == ["stale"]
    await asyncio.to_thread(server.start)
    for watcher in (early, late):
        await watcher.sees("machine:gate", counts={"Shut": 1, "Open": 0})
        assert watcher.screen.states[-1] == "live"
