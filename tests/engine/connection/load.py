"""Steady calls from several threads while a server dies or moves."""

from __future__ import annotations

import threading
import time
from typing import Any

from machines.engine import Engine, SignalboxError
from machines.engine.errors import EngineUnavailable
from tests.engine.builders import counter

from .clusters import eventually


class Load:
    """A thread for each instance that adds one to its counter as fast as it can, and notes what came of it.

    ``acknowledged``: steps that came back; ``unknown``: calls that may have happened; ``errors``: all that was raised.
    """

    def __init__(self, engine: Engine, ids: list[str]) -> None:
        self._engine = engine
        self._stop = threading.Event()
        self.acknowledged = dict.fromkeys(ids, 0)
        self.unknown = dict.fromkeys(ids, 0)
        self.errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run, args=(id,)) for id in ids]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, id: str) -> None:
        while not self._stop.is_set():
            try:
                self._engine.fire("counter", id, "add")
                self.acknowledged[id] += 1
            except SignalboxError as error:
                self.errors.append(error)
                self.unknown[id] += not (isinstance(error, EngineUnavailable) and error.retry_safe)
                time.sleep(0.01)

    def wait_for_more(self) -> None:
        """Wait until every thread had 20 more steps acknowledged."""
        wanted = {id: count + 20 for id, count in self.acknowledged.items()}
        eventually(lambda: all(self.acknowledged[id] >= least for id, least in wanted.items()))


def counting() -> dict[str, Any]:
    """A counter without an end."""
    definition = counter()
    definition["states"]["On"]["on"]["add"] = {"actions": [{"set": {"n": "n + 1"}}]}
    return definition
