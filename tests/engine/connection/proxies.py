"""A relay in front of a server that loses answers: what a broken network does to a call that was carried out."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Relay:
    """Listens on a port of its own. ``swallow(n)``: the next ``n`` answers are lost and their connections break."""

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._armed = threading.Event()
        self.mute = False
        self.requests: list[bytes] = []
        self.url = f"redis://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def break_next(self, *, mute: bool = False) -> None:
        """From now on answers are lost: connections break, or with ``mute`` stay open and say nothing."""
        self.requests.clear()
        self.mute = mute
        self._armed.set()

    def mend(self) -> None:
        self._armed.clear()

    def sent(self, word: bytes) -> int:
        """How often a request that holds ``word`` came while answers were lost."""
        return sum(request.count(word) for request in self.requests)

    def close(self) -> None:
        for end in [self._server, *self._open]:
            with contextlib.suppress(OSError):
                end.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                upstream = self._connect()
                self._open += [client, upstream]
                threading.Thread(target=self._forward, args=(client, upstream), daemon=True).start()
                threading.Thread(target=self._answer, args=(upstream, client), daemon=True).start()

    def _connect(self) -> socket.socket:
        if self._target.scheme == "unix":
            upstream = socket.socket(socket.AF_UNIX)
            upstream.connect(str(Path(unquote(self._target.path))))
            return upstream
        return socket.create_connection((self._target.hostname, self._target.port))

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self._armed.is_set():
                    self.requests.append(data)
                target.sendall(data)
        self._end(source, target)

    def _answer(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not self._armed.is_set():
                    target.sendall(data)
                elif not self.mute:
                    break
        self._end(source, target)

    @staticmethod
    def _end(*ends: socket.socket) -> None:
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
