"""Part one: what the server does, 50 connections, without and with pipelining."""

from __future__ import annotations

import time
from functools import partial
from statistics import median

from . import workloads
from .driver import Driver
from .report import Section
from .rounds import Measured, compare, interleave
from .stage import Stage

NAMES = {
    "HSET": "HSET of one field",
    "empty": "empty FCALL",
    "hand-written": "hand-written Lua transition",
    "fire": "fire",
}


def measure(stage: Stage, rounds: int, seconds: float) -> list[Section]:
    with stage.driver() as driver:
        return Throughput(stage, driver).sections(rounds, seconds)


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
        found = interleave(rounds, {name: partial(self._run, name, depth, seconds) for name in NAMES})
        moved = self._stage.moved() - before
        if moved != self._fired:
            raise RuntimeError(f"{self._fired} calls were answered, but {moved} transitions were taken")
        return self._report(depth, found)

    def _run(self, workload: str, depth: int, seconds: float) -> float:
        cpu, started = self._stage.cpu(), time.perf_counter()
        load = self._driver.run(workload, depth, seconds)
        took = time.perf_counter() - started
        spent, slot = self._stage.cpu() - cpu, f"{workload}{depth}"
        self._server_busy.setdefault(slot, []).append(spent / took)
        self._driver_busy.setdefault(slot, []).append(load.busy)
        self._cost.setdefault(slot, []).append(spent / load.calls * 1e6)
        self._fired += load.calls if workload == "fire" else 0
        return load.rate

    def _report(self, depth: int, found: dict[str, Measured]) -> Section:
        peers = {"empty": ["HSET"], "hand-written": ["HSET"], "fire": ["HSET", "hand-written"]}
        rows = compare(found, peers, NAMES)
        for name, row in zip(found, rows, strict=True):
            row.note = self._busy(f"{name}{depth}")
        rows[3].note += f"; {self._against(depth):.2f} x hand-written by server time"
        how = "one call at a time" if depth == 1 else f"pipelines of {depth}"
        return Section(f"{workloads.CONNECTIONS} connections, {how}", rows)

    def _busy(self, slot: str) -> str:
        server, driver = max(self._server_busy[slot]), max(self._driver_busy[slot])
        return f"server {median(self._cost[slot]):.1f} µs a call, {server:.0%} busy; driver {driver:.0%}"

    def _against(self, depth: int) -> float:
        """The same ratio from CPU time: what others do on this machine meanwhile weighs less on it."""
        mine, theirs = self._cost[f"fire{depth}"], self._cost[f"hand-written{depth}"]
        return median(b / a for a, b in zip(mine, theirs, strict=True))
