"""Hears the bells of partitions, as an idle worker does."""

from __future__ import annotations

import secrets
import time
from typing import Any

from machines.engine import Engine


class Bells:
    """The messages on the channel of one partition, from here on."""

    def __init__(self, engine: Engine, machine: str, number: int = 0) -> None:
        self._engine = engine
        self._channel = engine.keys.partition(machine, number).bells
        self._pubsub: Any = engine.client.pubsub()
        self._pubsub.ssubscribe(self._channel)
        while (message := self._pubsub.get_message(timeout=60.0)) is not None and message["type"] != "ssubscribe":
            pass

    def heard(self) -> list[str]:
        """What came since the last call: up to a mark that is published now."""
        mark, found = secrets.token_hex(4), []
        deadline = time.monotonic() + 60
        self._engine.client.spublish(self._channel, mark)
        while time.monotonic() < deadline:
            message = self._pubsub.get_message(timeout=1.0)
            if message is None or message["type"] != "smessage":
                continue
            if message["data"] == mark:
                return found
            found.append(message["data"])
        raise AssertionError("no message comes")

    def close(self) -> None:
        self._pubsub.close()


def wait_on_lists(engine: Engine, machine: str, queue: str = "work") -> None:
    """Take and tick once as a worker does that waits on bell lists: one of the release before, for example."""
    root = engine.keys.partition(machine).root
    assert engine.client.fcall("sb_take", 1, root, queue, "before", 1, "", "", "")[0] == "OK"
    assert engine.client.fcall("sb_tick", 1, root, "", 1, "")[0] == "OK"
