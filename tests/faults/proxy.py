"""A TCP relay in front of a server that loses, tears and silences what passes, at a command that is named."""

from __future__ import annotations

import contextlib
import enum
import socket
import threading
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Fault(enum.Enum):
    """What happens to the next request that holds a word. "Silent": the connection stays open and says nothing more."""

    LOST_REQUEST = "lost request"
    TORN_REQUEST = "torn request"
    SILENT_REQUEST = "silent before the request"
    LOST_REPLY = "lost reply"
    TORN_REPLY = "torn reply"
    SILENT_REPLY = "silent after the request"


class Proxy:
    """Listens on a port of its own and relays to ``url`` (redis:// or unix://)."""

    def __init__(self, url: str) -> None:
        self._target = url
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}"
        self._links: list[Link] = []
        self._armed: dict[bytes, Fault] = {}
        self._lock = threading.Lock()
        self.struck = 0  # faults that have happened
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def arm(self, word: bytes, fault: Fault) -> None:
        """The next request that holds ``word`` meets ``fault``; the one after it passes."""
        with self._lock:
            self._armed[word] = fault

    def cut(self) -> None:
        """Every connection breaks."""
        for link in self._links:
            link.end()

    def freeze(self) -> None:
        """Every connection of now stays open and says nothing more; neither side is told. New ones work."""
        for link in self._links:
            link.silent.set()

    def switch(self, url: str) -> None:
        """Another server answers from now on; connections to the one before break."""
        self._target = url
        self.cut()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.cut()
        for link in self._links:
            link.close()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fault_of(self, data: bytes) -> Fault | None:
        """The fault this request is to meet."""
        with self._lock:
            for word in self._armed:
                if word in data:
                    self.struck += 1
                    return self._armed.pop(word)
        return None

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            try:
                self._links.append(Link(self, client, _connect(self._target)))
            except OSError:
                client.close()


class Link:
    """One connection through the proxy, with a thread for each direction."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._fault: Fault | None = None
        self.silent = threading.Event()
        for relay in (self._ask, self._answer):
            threading.Thread(target=relay, daemon=True).start()

    def end(self) -> None:
        for side in (self._client, self._server):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._client.close()
        self._server.close()

    def _ask(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._client.recv(1 << 20):
                if not self.silent.is_set():
                    self._forward(data)
        self._over()

    def _forward(self, data: bytes) -> None:
        self._fault = fault = self._proxy.fault_of(data)
        if fault is Fault.SILENT_REQUEST:
            self.silent.set()
        elif fault is Fault.LOST_REQUEST:
            self.end()
        elif fault is Fault.TORN_REQUEST:
            self._server.sendall(data[: len(data) // 2])
            self.end()
        else:
            self._server.sendall(data)

    def _answer(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._server.recv(1 << 20):
                if self._fault is Fault.SILENT_REPLY:
                    self.silent.set()
                if self.silent.is_set():
                    continue
                if self._fault is Fault.TORN_REPLY:
                    self._client.sendall(data[: len(data) // 2])
                if self._fault in (Fault.LOST_REPLY, Fault.TORN_REPLY):
                    break
                self._client.sendall(data)
        self._over()

    def _over(self) -> None:
        """A side is gone. Of a silent link the other one is not told: that is what half-open means."""
        if not self.silent.is_set():
            self.end()


def _connect(url: str) -> socket.socket:
    target = urlsplit(url)
    if target.scheme == "unix":
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(str(Path(unquote(target.path))))
        except OSError:
            server.close()
            raise
        return server
    return socket.create_connection((target.hostname, target.port))
