"""The whole way: a step by this process, the site's uvicorn in another, a websocket over TCP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from dashboard.live.messages import CloseCode
from machines.engine import Engine, Fire

from .builders import Screen
from .service import Service

PATIENCE = 60.0
STEPS = 30


@pytest.fixture
async def connection(service: Service, gate: Engine) -> AsyncIterator[ClientConnection]:
    async with service.connect() as connection:
        yield connection


async def say(connection: ClientConnection, kind: str, topic: str) -> None:
    await connection.send(json.dumps({"type": kind, "topic": topic}))


async def sees(connection: ClientConnection, screen: Screen, topic: str, **expected: object) -> None:
    async with asyncio.timeout(PATIENCE):
        while not expected.items() <= screen.values.get(topic, {}).items():
            screen.show(await connection.recv())


@pytest.fixture
async def hinted(redis_url: str, prefix: str, gate: Engine, tmp_path: Path) -> AsyncIterator[ClientConnection]:
    """Of a site that reads by itself once an hour: what it shows came by a hint."""
    service = Service(redis_url, prefix, tmp_path, reconcile=3600.0, reconcile_without_hints=3600.0)
    try:
        async with service.connect() as connection:
            yield connection
    finally:
        service.stop()


@pytest.mark.faults
async def test_each_step_of_another_process_shows_by_its_hint(gate: Engine, hinted: ClientConnection) -> None:
    """``benchmarks/RESULTS.md`` has how soon."""
    screen = Screen()
    await say(hinted, "subscribe", "machine:gate")
    await sees(hinted, screen, "machine:gate", counts={"Shut": 1, "Open": 0})
    for number in range(10):
        await asyncio.to_thread(gate.fire, "gate", "north", "shut" if number % 2 else "open")
        await sees(hinted, screen, "machine:gate", counts={"Shut": number % 2, "Open": 1 - number % 2})


async def test_two_thousand_steps_end_with_the_engines_own_counts(gate: Engine, connection: ClientConnection) -> None:
    screen = Screen()
    await say(connection, "subscribe", "machine:gate")
    await say(connection, "subscribe", "instance:gate/north")
    await sees(connection, screen, "machine:gate")
    for number in range(2001):
        await asyncio.to_thread(gate.fire, "gate", "north", "shut" if number % 2 else "open")
    await sees(connection, screen, "machine:gate", counts=gate.counts("gate"))
    await sees(connection, screen, "instance:gate/north", revision=2002)


async def test_a_client_that_does_not_read_is_closed_while_others_see_on(
    service: Service, gate: Engine, connection: ClientConnection
) -> None:
    """What it watches is large, and the buffers between are finite."""
    names, screen = [f"big{number}" for number in range(10)], Screen()
    for name in names:
        gate.create("gate", name)
    async with service.connect(max_queue=1) as deaf:
        for name in names:
            await say(deaf, "subscribe", f"instance:gate/{name}")
        await say(connection, "subscribe", "machine:gate")
        for step in range(1, STEPS):
            calls = [Fire("gate", name, "write", {"text": "xy"[step % 2] * 60_000}) for name in names]
            await asyncio.to_thread(gate.fire_many, calls)
            await sees(connection, screen, "machine:gate", flow={"1:t2": 10 * step})
        async with asyncio.timeout(PATIENCE):
            frames = [json.loads(frame) async for frame in late(deaf)]
    assert deaf.close_code == CloseCode.TOO_SLOW
    assert len([frame for frame in frames if frame["type"] == "delta"]) < STEPS * len(names) / 2, "values were skipped"


async def late(connection: ClientConnection) -> AsyncIterator[str]:
    with contextlib.suppress(ConnectionClosed):
        while True:
            yield await connection.recv()


async def test_a_frame_far_too_long_ends_the_connection(connection: ClientConnection) -> None:
    await connection.send("x" * 100_000)
    async with asyncio.timeout(PATIENCE):
        await connection.wait_closed()
    assert connection.close_code == 1009


async def test_without_a_session_it_is_closed_with_4401(service: Service) -> None:
    async with service.connect(cookie="nothing") as connection:
        await connection.wait_closed()
    assert connection.close_code == CloseCode.SIGNED_OUT


async def test_pages_are_told_when_the_site_goes_down(service: Service, connection: ClientConnection) -> None:
    service.process.terminate()
    async with asyncio.timeout(PATIENCE):
        await connection.wait_closed()
    assert connection.close_code == 1012
    assert await asyncio.to_thread(service.process.wait, PATIENCE) in (0, -signal.SIGTERM)
