"""The test kit for classes of unittest: Django's TestCase, under ``manage.py test`` and under pytest."""

from __future__ import annotations

import contextlib
import inspect
import os
import tempfile
import unittest
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .kit import Signalbox, open_kit
from .server import serve

if TYPE_CHECKING:
    Base: Any = unittest.TestCase
else:
    Base = object

_urls: dict[int, str] = {}


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
