"""What a worker with nothing to do costs: its CPU, and the commands it keeps the server busy with."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
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
        with contextlib.suppress(redis.RedisError, OSError, ValueError):  # its connection is closed under it
            for command in self._monitor.listen():
                self.count += command["client_type"] != "lua" and not command["command"].startswith("INFO")

    def __exit__(self, *_: object) -> None:
        self._client.close()


def watch(urls: Sequence[str], seconds: float, *counters: Callable[[], float]) -> list[float]:
    """Return the commands that clients sent the servers in a second, and by how much each counter grew in one."""
    with contextlib.ExitStack() as stack:
        sent = [stack.enter_context(Sent(url)) for url in urls]
        before, began = [read() for read in counters], time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        grown = [read() - start for read, start in zip(counters, before, strict=True)]
        return [each / took for each in (sum(each.count for each in sent), *grown)]


def measure(stage: Stage, contenders: Sequence[Contender], seconds: float = SECONDS) -> Section:
    rows = [row for each in contenders for row in _measure(stage, each, seconds)]
    note = f"Idle: over {seconds:.0f} seconds, % of a core; in all: with commands inside functions."
    return Section(TITLE, rows, note)


def _measure(stage: Stage, contender: Contender, seconds: float) -> list[Row]:
    stage.clear(contender)
    stage.produce(contender, "many", 1)
    with stage.worker(contender, 1) as worker:
        worker.stamps()
        time.sleep(SETTLE)
        sent, cpu, ran = watch([stage.url], seconds, worker.cpu, stage.commands)
    return [
        Row(f"{contender.title}: CPU", cpu * 100, unit="%"),
        Row(f"{contender.title}: commands sent", sent, note=f"{ran:,.1f} in all"),
    ]
