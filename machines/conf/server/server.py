"""Supervised servers, from start to end: one by itself, and one of a cluster."""

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from .folder import Lock, ServerFailed, Socket, find_program, read_last_words
from .guarded import GuardedProcess

READY_WITHIN = 60.0  # seconds; a large append-only file takes its time to load
CALL_TIMEOUT = 5.0  # seconds
HOST = "127.0.0.1"
OPTIONS = {
    "maxmemory-policy": "noeviction",
    "hash-max-listpack-value": "512",  # bytes: a text of 100 in an instance takes 272 bytes, not 504
    "daemonize": "no",
}
# The wheel's server uses glibc's allocator. With this it keeps what a call has freed for the next one: calls of many
# jobs take a twentieth to a tenth less time, and the process some 10 MB more. Other allocators ignore it.
ALLOCATOR = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=1000:glibc.malloc.tcache_max=20000"}


class ServerProcess:
    """The process of a server, with its data in ``folder``; ``log`` is what it writes."""

    folder: Path
    log_name = "log"
    title = "the server"
    process: GuardedProcess | None = None

    def client(self) -> redis.Redis:
        """Return a client of this server, which answers in text. Close it, or use it in a ``with``."""
        raise NotImplementedError

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def log(self) -> Path:
        return self.folder / self.log_name

    def last_words(self) -> str:
        """Return the end of the server's log."""
        return read_last_words(self.log)

    def launch(
        self, command: list[str], *, keep: Sequence[int], grace: float, flags: int = os.O_APPEND
    ) -> GuardedProcess:
        """Start the command; what it writes goes into the log, which is opened with ``flags``."""
        descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | flags, 0o600)
        try:
            environment = ALLOCATOR | os.environ
            return GuardedProcess(command, keep=keep, output=descriptor, env=environment, cwd=self.folder, grace=grace)
        finally:
            os.close(descriptor)

    def answers(self) -> bool:
        """Tell whether it takes calls. One that still loads its data does not."""
        try:
            with self.client() as client:
                return bool(client.ping())
        except (redis.RedisError, OSError):
            return False

    def wait(self, within: float = READY_WITHIN) -> None:
        """Return when the server answers. Raises ServerFailed."""
        deadline, pause = time.monotonic() + within, 0.005
        while not self.answers():
            code = self.process.poll() if self.process is not None else None
            if code is not None:
                raise ServerFailed(f"{self.title} ended at once (code {code})", self.last_words())
            if time.monotonic() > deadline:
                raise ServerFailed(f"{self.title} did not answer within {within:g} seconds", self.last_words())
            time.sleep(pause)
            pause = min(pause * 1.5, 0.2)

    def end(self) -> None:
        """End the process in order, if there is one."""
        process, self.process = self.process, None
        if process is not None:
            process.stop()


def _connect(**place: Any) -> redis.Redis:
    return redis.Redis(
        **place,
        decode_responses=True,
        socket_timeout=CALL_TIMEOUT,
        socket_connect_timeout=CALL_TIMEOUT,
        retry=Retry(NoBackoff(), 0),
    )


class Server(ServerProcess):
    """A server of this process' own, with its data in ``folder``.

    It listens on a Unix socket only, which no other user can open; it keeps an append-only file, so a later start
    on the same folder finds the same data; nothing is ever evicted. ``start`` raises ``FolderInUse`` or
    ``ServerFailed``. ``stop`` shuts it down in order: SIGTERM is what the server takes for SHUTDOWN.
    """

    log_name = "valkey.log"

    def __init__(self, folder: Path, *, program: str | Path | None = None, persistent: bool = True) -> None:
        self.folder = Path(folder).absolute()
        self.program = program
        self.persistent = persistent
        self.url = ""
        self._lock: Lock
        self._place: Socket
        self._open = contextlib.ExitStack()

    def start(self, *, within: float = READY_WITHIN) -> Self:
        """Start, and return when the server answers. ``within``: seconds before giving up."""
        find_program(self.program)
        with contextlib.ExitStack() as undo:
            self._lock = Lock(self.folder)
            undo.callback(self._lock.release)
            self._place = Socket(self.folder)
            undo.callback(self._place.remove)
            self._launch(within)
            undo.callback(self.end)
            self.url = f"unix://{quote(str(self._place.path))}"
            note = self.folder / "url"  # so that other commands of the same installation find the server
            note.write_text(self.url + "\n", encoding="utf-8")
            undo.callback(note.unlink, missing_ok=True)
            self._open = undo.pop_all()
        return self

    def revive(self, *, within: float = READY_WITHIN) -> None:
        """Start it again after it ended by itself: same data, same address, and the folder stays ours."""
        self.end()
        self._launch(within)

    def stop(self) -> None:
        """Stop the server. Safe to call twice. The data is on disk and the folder is free when it returns."""
        self._open.close()
        self.url = ""

    def client(self) -> redis.Redis:
        return _connect(unix_socket_path=str(self._place.path))

    def _launch(self, within: float) -> None:
        command = [str(find_program(self.program)), *self._options()]
        self.process = self.launch(command, keep=[self._lock.descriptor], grace=10, flags=os.O_TRUNC | os.O_APPEND)
        try:
            self.wait(within)
        except BaseException:
            self.end()
            raise

    def _options(self) -> list[str]:
        options = {
            "port": "0",
            "unixsocket": str(self._place.path),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "appendonly": "yes" if self.persistent else "no",
            "appendfsync": "everysec",
            "save": "",
            "logfile": "",
            "pidfile": "",
            **OPTIONS,
        }
        return [word for name, value in options.items() for word in (f"--{name}", value)]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


class Node(ServerProcess):
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
        self.title = f"the node {HOST}:{port}"
        self.port = port
        self.bus = bus
        self.password = password
        self.program = program
        self.options = options or {}
        self.keep = keep

    def __repr__(self) -> str:
        return f"<Node {self.address}>"

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def url(self) -> str:
        """The address of this node alone."""
        return f"redis://{f':{self.password}@' if self.password else ''}{self.address}"

    def client(self) -> redis.Redis:
        return _connect(host=HOST, port=self.port, password=self.password or None)

    def start(self) -> None:
        """Start the server; ``wait`` returns when it answers."""
        self.stop()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        command = [str(find_program(self.program)), str(self._write_options())]
        self.process = self.launch(command, keep=self.keep, grace=3)

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
        self.end()

    def kill(self) -> None:
        """End it with SIGKILL, as a crash does."""
        with contextlib.suppress(OSError, ValueError):
            os.kill(int((self.folder / "pid").read_text()), signal.SIGKILL)
        self.stop()

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
            **OPTIONS,
            "shutdown-timeout": "1",  # seconds: all nodes end together, nobody is left to copy to
        }
        if self.password:
            options |= {"requirepass": self.password, "masterauth": self.password}
        lines = "".join(f"{name} {value}\n" for name, value in (options | self.options).items())
        path = self.folder / "node.conf"
        path.touch(mode=0o600)
        path.write_text(lines, encoding="utf-8")
        return path
