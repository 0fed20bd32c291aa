"""What a worker with nothing to do costs: its CPU, and the commands it keeps the server busy with."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

import redis

from benchmarks.report import Row, Section

from .contenders import Contender
from .stage import Stage

TITLE = "An idle worker"
SETTLE = 3.0  # seconds after its first job, for everything a worker does once
SECONDS = 10.0


class Sent:
    """Counts the commands that clients send. The server's own counters also count what functions and scripts run."""

    def __init__(self, url: str) -> None:
        self.count = 0
        self._client = redis.Redis.from_url(url, decode_responses=True)
        self._monitor = self._client.monitor()
        self._thread = threading.Thread(target=self._read, name="monitor", daemon=True)

    def __enter__(self) -> Self:
        self._monitor.__enter__()
        self._thread.start()
        return self

    def wait(self, count: int, seconds: float = 5.0) -> None:
        """Until so many were counted: the server tells of a command while it answers it."""
        deadline = time.monotonic() + seconds
        while self.count < count and time.monotonic() < deadline:
            time.sleep(0.001)

    def _read(self) -> None:
        with suppress(redis.RedisError, OSError, ValueError):  # its connection is closed under it
            for command in self._monitor.listen():
                self.count += command["client_type"] != "lua" and not command["command"].startswith("INFO")

    def __exit__(self, *_: object) -> None:
        self._client.close()


class Idle:
    def __init__(self, stage: Stage, contenders: Sequence[Contender], seconds: float = SECONDS) -> None:
        self._stage = stage
        self._contenders = contenders
        self._seconds = seconds

    def section(self) -> Section:
        rows = [row for each in self._contenders for row in self._rows(each)]
        return Section(
            TITLE, rows, f"Idle: over {self._seconds:.0f} seconds, % of a core; in all: with commands inside functions."
        )

    def _rows(self, contender: Contender) -> list[Row]:
        self._stage.clear(contender)
        self._stage.produce(contender, "many", 1)
        with self._stage.worker(contender, 1) as worker:
            worker.stamps()
            time.sleep(SETTLE)
            with Sent(self._stage.url) as sent:
                commands, spent, began = self._stage.commands(), worker.cpu(), time.monotonic()
                time.sleep(self._seconds)
                took = time.monotonic() - began
                share = (worker.cpu() - spent) / took * 100
                ran = (self._stage.commands() - commands) / took
                calls = sent.count / took
        return [
            Row(f"{contender.title}: CPU", share, unit="%"),
            Row(f"{contender.title}: commands sent", calls, note=f"{ran:,.1f} in all"),
        ]
