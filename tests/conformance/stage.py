"""A real server, and on it an engine of its own for each case."""

from __future__ import annotations

import contextlib
import itertools
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

from machines.conf.server import Server
from machines.engine import Engine
from machines.engine.connection import client

BATCH = 500  # keys removed in one command


class Stage:
    """Gives each case a key prefix nobody else uses and removes what the case leaves behind."""

    def __init__(self, url: str) -> None:
        self._client = client.connect(url)
        self._run = f"conformance-{secrets.token_hex(4)}"
        self._number = itertools.count(1)

    @contextlib.contextmanager
    def engine(self) -> Iterator[Engine]:
        prefix = f"{self._run}-{next(self._number)}:"
        try:
            yield Engine(self._client, prefix=prefix)
        finally:
            keys = list(self._client.scan_iter(match=f"{prefix}*", count=1000))
            for at in range(0, len(keys), BATCH):
                self._client.unlink(*keys[at : at + BATCH])

    def close(self) -> None:
        self._client.close()


@contextlib.contextmanager
def stage(url: str | None = None) -> Iterator[Stage]:
    """On a server that runs already, or on one of this run's own."""
    with contextlib.ExitStack() as stack:
        if url is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="signalbox-conformance-"))
            url = stack.enter_context(Server(Path(folder), persistent=False)).url
        found = Stage(url)
        stack.callback(found.close)
        yield found
