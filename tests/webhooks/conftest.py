"""A receiver that is real: an HTTP server of this process that answers as it is told, and remembers what came."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from machines.people.actor import Actor
from machines.webhooks import management
from tests.configuration import configure
from tests.engine.builders import machine, publish
from tests.pages.conftest import as_, user_of

__all__ = ["as_", "user_of"]

BELL = {
    "Ready": {
        "on": {
            "ring": {"target": "Ready", "actions": {"emit": {"type": "bell.rung", "data": {"by": "event.by"}}}},
            "note": {"target": "Ready", "actions": [{"log": "'nothing'"}, {"emit": {"type": "noted"}}]},
        }
    }
}


class Receiver:
    """``answers``: codes for the next requests, then 204 for all. ``requests``: (path, headers, body) of each."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: list[int] = []
        self.headers: dict[str, str] = {}
        self.body = b""
        self.hang = threading.Event()
        self.hang.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                outer.requests.append((self.path, dict(self.headers.items()), self.rfile.read(length)))
                outer.hang.wait(60)
                try:
                    self.send_response(outer.answers.pop(0) if outer.answers else 204)
                    for name, value in outer.headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(outer.body)
                except OSError:
                    return  # whoever asked has gone

            do_GET = do_POST

            def log_message(self, *args) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook?a=b"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.hang.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def receiver(settings) -> Iterator[Receiver]:
    configure(settings, WEBHOOK_HOSTS=["127.0.0.1"])
    receiver = Receiver()
    configure(settings, WEBHOOK_PORTS=[receiver.server.server_address[1]])
    yield receiver
    receiver.close()


@pytest.fixture
def actor(user_of) -> Actor:
    return Actor(user_of("supervisor", "ann"), "page 192.0.2.1")


@pytest.fixture
def bell(engine, db) -> str:
    """A machine that emits, with one instance of it; its name."""
    name = publish(engine, machine("bell", BELL))
    engine.create(name, "front")
    return name


@pytest.fixture
def hook(actor, bell, receiver) -> Callable:
    """Makes a webhook that leads to the receiver."""

    def made(name: str = "all", **fields):
        webhook, _ = management.make(actor, **{"name": name, "url": receiver.url, "machines": [bell]} | fields)
        return webhook

    return made


def until(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.02)
