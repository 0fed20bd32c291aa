"""What every part measures on: one server, the activation machine, and the same accounts for all contenders."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from machines.conf.server import Server
from machines.engine import Engine
from machines.engine.connection.client import Client

from . import workloads
from .driver import Driver, drive

HERE = Path(__file__).parent
DEFINITION = HERE.parent / "examples" / "activation.json"
PREFIX = "bench:"
BATCH = 500  # calls in one pipeline while setting up


@contextlib.contextmanager
def server(url: str | None) -> Iterator[str]:
    """The address of a server: the one that was named, or one of this run's own, which keeps nothing."""
    if url:
        yield url
        return
    with (
        tempfile.TemporaryDirectory(prefix="signalbox-bench-") as folder,
        Server(Path(folder), persistent=False) as own,
    ):
        yield own.url


def name_of(client: Client) -> str:
    """``Valkey 9.1.0``: what a server is, for the report."""
    info = client.info("server")
    valkey = info.get("valkey_version")
    return f"Valkey {valkey}" if valkey else f"Redis {info['redis_version']}"


def read_server_cpu(*servers: Client) -> float:
    """Return the seconds of CPU that servers have used."""
    used = [server.info("cpu") for server in servers]
    return sum(float(each["used_cpu_user"]) + float(each["used_cpu_sys"]) for each in used)


def call_many(client: Client, root: str, calls: Iterable[tuple[str | int, ...]], size: int = BATCH) -> int:
    """Call functions of a library in pipelines: name, and words after the root. Return how many; all must be done."""
    count, calls = 0, iter(calls)
    while batch := list(islice(calls, size)):
        pipeline = client.pipeline(transaction=False)
        for function, *words in batch:
            pipeline.fcall(function, 1, root, *words)
        if refused := [reply for reply in pipeline.execute() if reply[0] != "OK"]:
            raise RuntimeError(f"{root}: {refused[0]}")
        count += len(batch)
    return count


class Stage:
    """The server's address, an engine on it, and accounts in the state Waiting."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = Engine.from_url(url, prefix=PREFIX)

    def set_up(self) -> None:
        """Starts from nothing below the prefix."""
        self.clear()
        self.engine.load_library()
        self.engine.client.function_load((HERE / "handwritten.lua").read_text(encoding="utf-8"), replace=True)
        self.engine.publish(json.loads(DEFINITION.read_text(encoding="utf-8")))

    def clear(self) -> None:
        keys = list(self.engine.client.scan_iter(match=f"{PREFIX.rstrip(':')}[-:]*", count=1000))
        for at in range(0, len(keys), BATCH):
            self.engine.client.unlink(*keys[at : at + BATCH])

    def enrol(self, ids: list[str]) -> None:
        """Accounts that wait for the code to be entered, for the engine and for the hand-written peer alike."""
        for id in ids:
            self.engine.create("activation", id, now=workloads.START)
        payload = {"token": workloads.TOKEN}
        self.engine.fire_many(("activation", id, "activate", payload) for id in ids)
        self._copy(ids)

    def _copy(self, ids: list[str]) -> None:
        ours, root = self.engine.keys.partition("activation"), workloads.peer_root(PREFIX)
        pipeline = self.engine.client.pipeline(transaction=False)
        for id in ids:
            pipeline.copy(ours.instance(id), f"{root}:i:{id}", replace=True)
            pipeline.zadd(f"{root}:in:Waiting", {id: workloads.START})
        pipeline.execute()

    @contextlib.contextmanager
    def driver(self) -> Iterator[Driver]:
        """A load driver with its accounts enrolled and every workload prepared at every depth."""
        for depth in workloads.DEPTHS:
            self.enrol([id for number in range(workloads.CONNECTIONS) for id in workloads.ids(depth, number)])
        with drive(self.url, PREFIX) as driver:
            for depth in workloads.DEPTHS:
                for workload in workloads.COMMANDS:
                    driver.prepare(workload, depth)
            yield driver

    def moved(self) -> int:
        """How many transitions of the activation machine were ever taken."""
        return sum(self.engine.live("activation").flow.values())

    def cpu(self) -> float:
        """Seconds of CPU the server has used."""
        return read_server_cpu(self.engine.client)
