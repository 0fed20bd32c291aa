"""One supervised server, from start to end."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from .folder import Lock, ServerFailed, Socket, find_program, read_last_words
from .guarded import Guarded

READY_WITHIN = 60.0  # seconds; a large append-only file takes its time to load


class Server:
    """A server of this process' own, with its data in ``folder``.

    It listens on a Unix socket only, which no other user can open; it keeps an append-only file, so a later start
    on the same folder finds the same data; nothing is ever evicted. ``start`` raises ``FolderInUse`` or
    ``ServerFailed``. ``stop`` shuts it down in order: SIGTERM is what the server takes for SHUTDOWN.
    """

    def __init__(self, folder: Path, *, program: str | Path | None = None, persistent: bool = True) -> None:
        self.folder = Path(folder).absolute()
        self.program = program
        self.persistent = persistent
        self.url = ""
        self._guarded: Guarded | None = None
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
            undo.callback(self._end)
            self.url = f"unix://{quote(str(self._place.path))}"
            note = self.folder / "url"  # so that other commands of the same installation find the server
            note.write_text(self.url + "\n", encoding="utf-8")
            undo.callback(note.unlink, missing_ok=True)
            self._open = undo.pop_all()
        return self

    def revive(self, *, within: float = READY_WITHIN) -> None:
        """Start it again after it ended by itself: same data, same address, and the folder stays ours."""
        self._end()
        self._launch(within)

    def stop(self) -> None:
        """Stop the server. Safe to call twice. The data is on disk and the folder is free when it returns."""
        self._open.close()
        self.url = ""

    @property
    def log(self) -> Path:
        return self.folder / "valkey.log"

    @property
    def running(self) -> bool:
        return self._guarded is not None and self._guarded.poll() is None

    def last_words(self) -> str:
        """Return the end of the server's log."""
        return read_last_words(self.log)

    def _launch(self, within: float) -> None:
        command = [str(find_program(self.program)), *self._options()]
        descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        try:
            guarded = Guarded(command, keep=[self._lock.descriptor], output=descriptor, cwd=self.folder)
        finally:
            os.close(descriptor)
        try:
            self._wait(guarded, within)
        except BaseException:
            guarded.stop()
            raise
        self._guarded = guarded

    def _end(self) -> None:
        guarded, self._guarded = self._guarded, None
        if guarded:
            guarded.stop()

    def _options(self) -> list[str]:
        options = {
            "port": "0",
            "unixsocket": str(self._place.path),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "appendonly": "yes" if self.persistent else "no",
            "appendfsync": "everysec",
            "save": "",
            "maxmemory-policy": "noeviction",
            "hash-max-listpack-value": "512",  # bytes: a text of 100 in an instance takes 272 bytes, not 504
            "daemonize": "no",
            "logfile": "",
            "pidfile": "",
        }
        return [word for name, value in options.items() for word in (f"--{name}", value)]

    def _wait(self, guarded: Guarded, within: float) -> None:
        deadline = time.monotonic() + within
        pause = 0.005
        while not answers(self._place.path):
            code = guarded.poll()
            if code is not None:
                raise ServerFailed(f"the server ended at once (code {code})", self.last_words())
            if time.monotonic() > deadline:
                raise ServerFailed(f"the server did not answer within {within:g} seconds", self.last_words())
            time.sleep(pause)
            pause = min(pause * 1.5, 0.2)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


def answers(path: Path) -> bool:
    """Tell whether the server behind this socket is ready. One that still loads its data says so, and is not."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
            channel.settimeout(2)  # seconds
            channel.connect(str(path))
            channel.sendall(b"PING\r\n")
            return channel.recv(64).startswith(b"+PONG")
    except OSError:
        return False
