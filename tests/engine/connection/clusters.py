"""Run a real cluster of three nodes on this machine."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from machines.engine import Engine
from machines.server import Guarded, binary

NODES = 3
SLOTS = 16384
READY_WITHIN = 60.0  # seconds


@dataclass
class Node:
    port: int
    process: Guarded

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port, decode_responses=True)


@contextlib.contextmanager
def running(folder: Path, program: str | None) -> Iterator[list[Node]]:
    """Three primaries that share the slots evenly."""
    ports = free_ports(NODES * 2)
    nodes: list[Node] = []
    try:
        for number, (port, bus) in enumerate(zip(ports[::2], ports[1::2], strict=True)):
            nodes.append(start(folder / f"node{number}", program, port, bus))
        join(nodes, ports[1::2])
        yield nodes
    finally:
        for node in nodes:
            node.process.ask()
        for node in nodes:
            node.process.stop()


def url_of(nodes: list[Node]) -> str:
    return f"redis+cluster://127.0.0.1:{nodes[0].port}"


@contextlib.contextmanager
def engine_on(nodes: list[Node], prefix: str, partitions: int, **options: Any) -> Iterator[Engine]:
    """An engine on the cluster; its keys are removed afterwards."""
    engine = Engine.from_url(url_of(nodes), prefix=prefix, partitions=partitions, **options)
    yield engine
    engine.client.close()
    for node in nodes:
        with node.client() as client:
            for key in client.scan_iter(match=f"{prefix}*", count=1000):
                client.unlink(key)


def start(folder: Path, program: str | None, port: int, bus: int) -> Node:
    folder.mkdir(parents=True)
    options = {
        "port": port,
        "bind": "127.0.0.1",
        "cluster-enabled": "yes",
        "cluster-port": bus,
        "cluster-node-timeout": 5000,
        "dir": folder,
        "save": "",
        "appendonly": "no",
        "daemonize": "no",
    }
    words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    log = (folder / "log").open("wb")
    with log:
        return Node(port, Guarded([binary.find(program), *words], output=log, grace=3))


def join(nodes: list[Node], buses: list[int]) -> None:
    share = SLOTS // NODES
    for number, node in enumerate(nodes):
        last = SLOTS - 1 if number == NODES - 1 else (number + 1) * share - 1
        with node.client() as client:
            eventually(client.ping)
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", number * share, last)
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port, buses[0])
    for node in nodes:
        with node.client() as client:
            eventually(lambda c=client: settled(c))


def settled(client: redis.Redis) -> bool:
    info = client.cluster("INFO")
    return info["cluster_state"] == "ok" and int(info["cluster_known_nodes"]) == NODES


def eventually(holds) -> None:
    deadline = time.monotonic() + READY_WITHIN
    while True:
        with contextlib.suppress(redis.ConnectionError):
            if holds():
                return
        assert time.monotonic() < deadline, "the cluster never came up"
        time.sleep(0.05)


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on; all are held until all are known."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [s.getsockname()[1] for s in sockets]
