"""On a Redis Cluster every primary makes the notifications of its own keys only."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from dashboard.api.live import read
from dashboard.live.hub.hub import Hub
from dashboard.live.limits import Limits
from dashboard.live.topics import parse
from machines.engine import Engine
from machines.engine.keys import Keys
from machines.server import binary
from tests.live.builders import GATE
from tests.live.conftest import NEVER, Watcher

pytestmark = pytest.mark.redis
HALF = 8192  # slots of each of two nodes
PARTITIONS = 8


def free_port() -> int:
    """One whose cluster bus port, 10,000 above it, exists."""
    for port in range(20_000, 50_000, 37):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) and probe.connect_ex(("127.0.0.1", port + 10_000)):
                return port
    raise AssertionError("no port is free")


@contextlib.contextmanager
def node(folder: Path, first_slot: int) -> Iterator[redis.Redis]:
    folder.mkdir()
    port = free_port()
    command = [binary.find(None), "--port", str(port), "--bind", "127.0.0.1", "--cluster-enabled", "yes", "--save", ""]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        with redis.Redis(port=port) as client:
            client.ping()  # tries again until it is up
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", first_slot, first_slot + HALF - 1)
            yield client
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """The URL of two primaries."""
    with node(tmp_path / "one", 0) as first, node(tmp_path / "two", HALF) as second:
        port = second.connection_pool.connection_kwargs["port"]
        first.execute_command("CLUSTER", "MEET", "127.0.0.1", port)
        for client in (first, second):
            while b"cluster_state:ok" not in client.execute_command("CLUSTER", "INFO", NEVER_DECODE=True):
                time.sleep(0.02)
        yield f"redis+cluster://127.0.0.1:{port}"


async def test_steps_on_all_primaries_show_by_their_hints(cluster: str) -> None:
    engine = Engine.from_url(cluster, prefix="t:", partitions=PARTITIONS)
    engine.publish(GATE)
    for number in range(24):
        engine.create("gate", f"i{number}")
    watcher = Watcher(Hub(cluster, Keys("t:"), Limits(reconcile=NEVER, reconcile_without_hints=NEVER)))
    watcher.watch("machine:gate", "instance:gate/i7", "overview")
    await watcher.sees("machine:gate", counts={"Shut": 24, "Open": 0})
    for number in range(24):
        engine.fire("gate", f"i{number}", "open")
        await watcher.sees("machine:gate", counts={"Shut": 23 - number, "Open": number + 1})
    await watcher.sees("instance:gate/i7", state="Open")
    assert len({node.port for node in engine.client.get_primaries()}) == 2
    value, _ = read(engine, parse("machine:gate"))
    assert {**value, "now": 0} == {**watcher.screen.values["machine:gate"], "now": 0}
    await watcher.leave()
    engine.client.close()
