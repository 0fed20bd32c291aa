"""A supervised Redis Cluster on this machine: for the demo and the tests.

::

    with Cluster(Path(".signalbox/cluster")) as cluster:
        Engine.from_url(cluster.url)
        cluster.nodes[0].kill()
        cluster.wait_settled()

It lives as long as the process that started it, as ``Server`` does.
"""

import contextlib
import functools
import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import redis

from .folder import Lock, ServerFailed, find_program
from .server import HOST, READY_WITHIN, Node

SLOTS = 16384
SETTLED_WITHIN = 90.0  # seconds: a busy machine takes its time to elect


class Cluster:
    """``primaries`` nodes that share the slots evenly, each with ``replicas`` copies, in a folder of their own.

    ``node_timeout``: seconds of silence after which a node counts as failed. ``full_coverage``: whether all nodes
    refuse calls while a slot has no owner. A persistent cluster keeps append-only files, and a later start on the same
    folder finds the same data on the same ports. ``start`` raises FolderInUse or ServerFailed.
    """

    def __init__(  # noqa: PLR0913
        self,
        folder: Path,
        *,
        primaries: int = 3,
        replicas: int = 1,
        password: str = "",
        program: str | Path | None = None,
        persistent: bool = False,
        node_timeout: float = 2.0,
        full_coverage: bool = False,
    ) -> None:
        self.folder = Path(folder).absolute()
        self.primaries = primaries
        self.replicas = replicas
        self.password = password
        self.program = program
        self.options = {
            "cluster-node-timeout": str(int(node_timeout * 1000)),
            "cluster-require-full-coverage": "yes" if full_coverage else "no",
            "cluster-allow-replica-migration": "no",
            "cluster-replica-validity-factor": "0",  # a replica of any age takes over
            "repl-diskless-sync-delay": "0",
            "appendonly": "yes" if persistent else "no",
        }
        self.nodes: list[Node] = []
        self._open = contextlib.ExitStack()

    @property
    def url(self) -> str:
        """``REDIS_URL`` with each node as a seed."""
        secret = f":{self.password}@" if self.password else ""
        return f"redis+cluster://{secret}{','.join(node.address for node in self.nodes)}"

    def start(self) -> Self:
        """Return when all slots are served and all replicas follow."""
        find_program(self.program)
        with contextlib.ExitStack() as undo:
            lock = Lock(self.folder)
            undo.callback(lock.release)
            new, ports = self._read_ports()
            self.nodes = [
                Node(
                    self.folder / f"node{number}",
                    *pair,
                    password=self.password,
                    program=self.program,
                    options=self.options,
                    keep=(lock.descriptor,),
                )
                for number, pair in enumerate(ports)
            ]
            undo.callback(self._end)
            for node in self.nodes:
                node.start()
            for node in self.nodes:
                node.wait()
            if new:
                self._join()
                (self.folder / "ports.json").write_text(json.dumps(ports), encoding="utf-8")
            self.wait_settled()
            self._note_url(undo)
            self._open = undo.pop_all()
        return self

    def stop(self) -> None:
        """End all nodes; the folder is free when it returns. Safe to call twice."""
        self._open.close()

    @property
    def running(self) -> bool:
        """Whether all nodes are."""
        return all(node.running for node in self.nodes)

    def revive(self) -> None:
        """Start the nodes that ended again: same data, same addresses."""
        for node in self.nodes:
            if not node.running:
                node.revive()

    def wait_settled(self, within: float = SETTLED_WITHIN) -> None:
        """Return when all slots have an owner that lives, all living nodes agree on it, and all replicas follow.

        A node that is stopped does not count. Raises ServerFailed.
        """
        poll(self.is_settled, "the cluster did not settle", within)

    def is_settled(self) -> bool:
        views = [_view(node) for node in self.nodes if node.running]
        living = {node.port for node in self.nodes if node.running}
        return any(views) and all(view == views[0] and set(view.values()) <= living for view in views)

    def _read_ports(self) -> tuple[bool, list[list[int]]]:
        """Tell whether the cluster is new, and the ports of each node. Those of an older one stand in its folder."""
        file = self.folder / "ports.json"
        count = self.primaries * (1 + self.replicas)
        if file.exists():
            ports = json.loads(file.read_text(encoding="utf-8"))
            if len(ports) != count:
                raise ServerFailed(f"{self.folder} holds a cluster of {len(ports)} nodes, not {count}; remove it first")
            return False, ports
        free = free_ports(count * 2)
        return True, [list(pair) for pair in zip(free[::2], free[1::2], strict=True)]

    def _join(self) -> None:
        """Give the slots to the primaries, introduce all nodes to each other, and attach the replicas."""
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(node.client()) for node in self.nodes]
            for number, client in enumerate(clients):
                client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
                if number < self.primaries:
                    first, last = (SLOTS * at // self.primaries for at in (number, number + 1))
                    client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last - 1)
                for node in self.nodes[:number]:
                    client.execute_command("CLUSTER", "MEET", HOST, node.port, node.bus)
            ids = [client.execute_command("CLUSTER", "MYID") for client in clients[: self.primaries]]
            for number, client in enumerate(clients[self.primaries :]):
                replicate = functools.partial(_replicate, client, ids[number % self.primaries])
                poll(replicate, "a replica did not find its primary")

    def _note_url(self, undo: contextlib.ExitStack) -> None:
        """Leave the URL in the folder, so that other commands of the same installation find the cluster."""
        note = self.folder / "url"
        note.touch(mode=0o600)
        note.write_text(self.url + "\n", encoding="utf-8")
        undo.callback(note.unlink, missing_ok=True)

    def _end(self) -> None:
        for node in self.nodes:
            node.ask_to_stop()
        for node in self.nodes:
            node.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


def _replicate(client: redis.Redis, primary: str) -> bool:
    try:
        return bool(client.execute_command("CLUSTER", "REPLICATE", primary))  # type: ignore[no-untyped-call]
    except redis.ResponseError:  # gossip has not brought the primary yet
        return False


def _view(node: Node) -> dict[tuple[int, int], int]:
    """Return ranges of slots -> ports of their primaries as a node sees it; nothing where the node is not settled
    itself."""
    try:
        with node.client() as client:
            info: Any = client.cluster("INFO")
            replication = client.info("replication")
            ranges = client.execute_command("CLUSTER", "SLOTS")
    except (redis.RedisError, OSError):
        return {}
    if info["cluster_state"] != "ok" or int(info["cluster_slots_ok"]) != SLOTS:
        return {}
    if replication["role"] == "slave" and replication["master_link_status"] != "up":
        return {}
    return dict(_flatten(ranges))


def _flatten(ranges: list[Any]) -> Iterator[tuple[tuple[int, int], int]]:
    for first, last, (_, port, *_), *_ in ranges:
        yield (first, last), port


def poll(holds: Callable[[], bool], otherwise: str, within: float = READY_WITHIN) -> None:
    deadline = time.monotonic() + within
    while not holds():
        if time.monotonic() > deadline:
            raise ServerFailed(f"{otherwise} within {within:g} seconds")
        time.sleep(0.05)


def free_ports(count: int) -> list[int]:
    """Find ports nobody listens on; all are held until all are known."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [s.getsockname()[1] for s in sockets]
