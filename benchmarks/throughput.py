"""Part one: what the server does, 50 connections, without and with pipelining."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from . import workloads
from .driver import Driver
from .report import Row, Section
from .rounds import Measured, interleave
from .stage import Stage

NAMES = {
    "hset": "HSET of one field",
    "empty": "empty FCALL",
    "handwritten": "hand-written Lua transition",
    "fire": "fire",
}


class Throughput:
    """Counts as it goes: every call that was answered must have moved an instance, and how busy everyone was."""

    def __init__(self, stage: Stage, driver: Driver) -> None:
        self._stage = stage
        self._driver = driver
        self._fired = 0
        self._server_busy: dict[str, list[float]] = {}
        self._driver_busy: dict[str, list[float]] = {}
        self._cost: dict[str, list[float]] = {}  # µs of the server's CPU a call takes

    def sections(self, rounds: int, seconds: float) -> list[Section]:
        return [self._section(depth, rounds, seconds) for depth in workloads.DEPTHS]

    def _section(self, depth: int, rounds: int, seconds: float) -> Section:
        before, self._fired = self._stage.moved(), 0
        found = interleave(rounds, {name: self._contender(name, depth, seconds) for name in NAMES})
        moved = self._stage.moved() - before
        if moved != self._fired:
            raise RuntimeError(f"{self._fired} calls were answered, but {moved} transitions were taken")
        return self._report(depth, found)

    def _contender(self, workload: str, depth: int, seconds: float) -> Callable[[], float]:
        def run() -> float:
            cpu, started = self._stage.cpu(), time.perf_counter()
            load = self._driver.run(workload, depth, seconds)
            took = time.perf_counter() - started
            spent, slot = self._stage.cpu() - cpu, f"{workload}{depth}"
            self._server_busy.setdefault(slot, []).append(spent / took)
            self._driver_busy.setdefault(slot, []).append(load.busy)
            self._cost.setdefault(slot, []).append(spent / load.calls * 1e6)
            self._fired += load.calls if workload == "fire" else 0
            return load.rate

        return run

    def _report(self, depth: int, found: dict[str, Measured]) -> Section:
        rows = []
        for name, title in NAMES.items():
            rows.append(Row(title, found[name].rate, note=self._busy(f"{name}{depth}")))
        rows[1].ratios["HSET"] = found["empty"].against(found["hset"])
        rows[2].ratios["HSET"] = found["handwritten"].against(found["hset"])
        rows[3].ratios["HSET"] = found["fire"].against(found["hset"])
        rows[3].ratios["hand-written"] = found["fire"].against(found["handwritten"])
        rows[3].note += f"; {self._against(depth):.2f} x hand-written by server time"
        how = "one call at a time" if depth == 1 else f"pipelines of {depth}"
        return Section(f"{workloads.CONNECTIONS} connections, {how}", rows)

    def _busy(self, slot: str) -> str:
        server, driver = max(self._server_busy[slot]), max(self._driver_busy[slot])
        return f"server {median(self._cost[slot]):.1f} µs a call, {server:.0%} busy; driver {driver:.0%}"

    def _against(self, depth: int) -> float:
        """The same ratio from CPU time: what others do on this machine meanwhile weighs less on it."""
        mine, theirs = self._cost[f"fire{depth}"], self._cost[f"handwritten{depth}"]
        return median(b / a for a, b in zip(mine, theirs, strict=True))
