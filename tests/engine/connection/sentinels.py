"""Run a real master, its replica and three Sentinels on this machine."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import redis

from machines.conf.server import GuardedProcess
from machines.conf.server.folder import find_program

from .clusters import eventually, free_ports

SERVICE = "main"
PASSWORD = "data-secret"
WATCHWORD = "watch-secret"  # of the Sentinels
SENTINELS = 3


@dataclass
class Watched:
    """Servers and Sentinels by port."""

    servers: dict[int, GuardedProcess] = field(default_factory=dict)
    sentinels: dict[int, GuardedProcess] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The URL of the service; at its first seed nobody listens."""
        seeds = ",".join(f"127.0.0.1:{port}" for port in (free_ports(1)[0], *self.sentinels))
        return f"redis+sentinel://:{PASSWORD}@{seeds}/{SERVICE}?sentinel_password={WATCHWORD}"

    def client(self, port: int) -> redis.Redis:
        return redis.Redis(port=port, password=PASSWORD, decode_responses=True)

    def sentinel(self) -> redis.Redis:
        """A client of the last Sentinel."""
        return redis.Redis(port=[*self.sentinels][-1], password=WATCHWORD, decode_responses=True)

    def master(self) -> int:
        """The port of the master, as the last Sentinel knows it."""
        with self.sentinel() as client:
            return int(client.sentinel_get_master_addr_by_name(SERVICE)[1])

    def has_replica(self) -> bool:
        """Tell whether the Sentinels know a replica that is in sync."""
        with self.sentinel() as sentinel, self.client(self.master()) as client:
            replicas = sentinel.sentinel_slaves(SERVICE)
            linked = any(row["master-link-status"] == "ok" and not row["is_sdown"] for row in replicas)
            return linked and client.info("replication").get("connected_slaves") == 1

    def kill(self, port: int) -> None:
        """End a server without giving it the time to say so."""
        with self.client(port) as client:
            process = client.info("server")["process_id"]
        os.kill(process, signal.SIGKILL)


@contextlib.contextmanager
def running(folder: Path, program: str | None) -> Iterator[Watched]:
    """Start everything, and wait until the Sentinels know each other and the replica."""
    ports = free_ports(2 + SENTINELS)
    found = Watched()
    try:
        for port in ports[:2]:
            found.servers[port] = _start_server(folder / str(port), program, port, ports[0])
        for port in ports[:2]:
            with found.client(port) as client:
                eventually(client.ping)
        for port in ports[2:]:
            found.sentinels[port] = _start_sentinel(folder / str(port), program, port, ports[0])
        for port in found.sentinels:
            with redis.Redis(port=port, password=WATCHWORD, decode_responses=True) as client:
                eventually(lambda c=client: c.sentinel_master(SERVICE)["num-other-sentinels"] == SENTINELS - 1)
        eventually(found.has_replica)
        yield found
    finally:
        processes = [*found.servers.values(), *found.sentinels.values()]
        for process in processes:
            process.ask()
        for process in processes:
            process.stop()


def _start_server(folder: Path, program: str | None, port: int, master: int) -> GuardedProcess:
    words = f"bind 127.0.0.1\nrequirepass {PASSWORD}\nmasterauth {PASSWORD}\nrepl-diskless-sync-delay 0\n"
    words += 'save ""\nappendonly no\n'
    if port != master:
        words += f"replicaof 127.0.0.1 {master}\n"
    return _start(folder, program, port, words)


def _start_sentinel(folder: Path, program: str | None, port: int, master: int) -> GuardedProcess:
    words = (
        f"bind 127.0.0.1\nrequirepass {WATCHWORD}\nsentinel sentinel-pass {WATCHWORD}\n"
        f"sentinel monitor {SERVICE} 127.0.0.1 {master} 2\nsentinel auth-pass {SERVICE} {PASSWORD}\n"
        f"sentinel down-after-milliseconds {SERVICE} 1000\nsentinel failover-timeout {SERVICE} 6000\n"
    )
    return _start(folder, program, port, words, "--sentinel")


def _start(folder: Path, program: str | None, port: int, words: str, *options: str) -> GuardedProcess:
    folder.mkdir(parents=True)
    config = folder / "config"  # a Sentinel writes its own
    config.write_text(f"port {port}\ndir {folder}\ndaemonize no\n{words}", encoding="utf-8")
    with (folder / "log").open("wb") as log:
        return GuardedProcess([find_program(program), str(config), *options], output=log, grace=3)
