"""One server of a cluster on this machine, from start to end."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from .folder import ServerFailed, find_program, read_last_words
from .guarded import Guarded

READY_WITHIN = 60.0  # seconds; a large append-only file takes its time to load
CALL_TIMEOUT = 5.0  # seconds
HOST = "127.0.0.1"


class Node:
    """A server in cluster mode on ``port``, with its data and its view of the cluster in ``folder``.

    ``bus`` is the port on which the nodes talk to each other; ``options`` are settings of the server; ``keep`` are
    descriptors that it inherits. A node that was stopped or killed comes back with ``start``: same port, same folder.
    """

    def __init__(
        self,
        folder: Path,
        port: int,
        bus: int,
        *,
        password: str = "",
        program: str | Path | None = None,
        options: dict[str, str] | None = None,
        keep: tuple[int, ...] = (),
    ) -> None:
        self.folder = folder
        self.port = port
        self.bus = bus
        self.password = password
        self.program = program
        self.options = options or {}
        self.keep = keep
        self.process: Guarded | None = None

    def __repr__(self) -> str:
        return f"<Node {self.address}>"

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def url(self) -> str:
        """The address of this node alone."""
        return f"redis://{f':{self.password}@' if self.password else ''}{self.address}"

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def client(self) -> redis.Redis:
        """Return a client of this node, which answers in text. Close it, or use it in a ``with``."""
        return redis.Redis(
            host=HOST,
            port=self.port,
            password=self.password or None,
            decode_responses=True,
            socket_timeout=CALL_TIMEOUT,
            socket_connect_timeout=CALL_TIMEOUT,
            retry=Retry(NoBackoff(), 0),
        )

    def start(self) -> None:
        """Start the server; ``wait`` returns when it answers."""
        self.stop()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        command = [str(find_program(self.program)), str(self._write_options())]
        descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self.process = Guarded(command, keep=self.keep, output=descriptor, cwd=self.folder, grace=3)
        finally:
            os.close(descriptor)

    def wait(self, within: float = READY_WITHIN) -> None:
        """Return when the node answers. Raises ServerFailed."""
        deadline = time.monotonic() + within
        while not self.answers():
            if not self.running:
                raise ServerFailed(f"the node {self.address} ended at once", self.last_words())
            if time.monotonic() > deadline:
                raise ServerFailed(f"the node {self.address} did not answer in {within:g} seconds", self.last_words())
            time.sleep(0.02)

    def answers(self) -> bool:
        """Tell whether it takes calls. One that still loads its data does not."""
        try:
            with self.client() as client:
                return bool(client.ping())
        except (redis.RedisError, OSError):
            return False

    def revive(self) -> None:
        """Start it again, and return when it answers."""
        self.start()
        self.wait()

    def ask_to_stop(self) -> None:
        """Tell it to end, and do not wait."""
        if self.process is not None:
            self.process.ask()

    def stop(self) -> None:
        """End it in order. Safe to call twice."""
        process, self.process = self.process, None
        if process is not None:
            process.stop()

    def kill(self) -> None:
        """End it with SIGKILL, as a crash does."""
        with contextlib.suppress(OSError, ValueError):
            os.kill(int((self.folder / "pid").read_text()), signal.SIGKILL)
        self.stop()

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def last_words(self) -> str:
        """Return the end of the node's log."""
        return read_last_words(self.log)

    def _write_options(self) -> Path:
        """Write the settings to a file that no other user can read, since the list of processes shows a command."""
        options = {
            "port": str(self.port),
            "bind": HOST,
            "cluster-enabled": "yes",
            "cluster-port": str(self.bus),
            "dir": f'"{self.folder}"',
            "pidfile": f'"{self.folder / "pid"}"',
            "save": '""',
            "maxmemory-policy": "noeviction",
            "hash-max-listpack-value": "512",  # bytes: a text of 100 in an instance takes 272 bytes, not 504
            "daemonize": "no",
            "shutdown-timeout": "1",  # seconds: all nodes end together, nobody is left to copy to
        }
        if self.password:
            options |= {"requirepass": self.password, "masterauth": self.password}
        lines = "".join(f"{name} {value}\n" for name, value in (options | self.options).items())
        path = self.folder / "node.conf"
        path.touch(mode=0o600)
        path.write_text(lines, encoding="utf-8")
        return path
