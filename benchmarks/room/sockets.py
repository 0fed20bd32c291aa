"""A thousand clients of one web process at the full rate of steps, a fifth of which never read."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.children import receive, run_child
from benchmarks.process import read_cpu, read_memory
from benchmarks.report import Aim, Row, Section
from benchmarks.site import Site
from benchmarks.stage import PREFIX
from machines.engine import Engine

from . import crowd, load
from .fleet import Member

CLIENTS = 1000
SILENT = 0.2
CROWDS = 2  # processes of clients
SECONDS = 20.0
RATES = {"as many steps as one process fires": 0, "2,000 steps a second": 2000}
LATENCY, CPU, GROWTH = 250.0, 0.5, 1.25  # ms at p99, cores, times what it held before


@dataclass(frozen=True, slots=True)
class Watched:
    """One run. ``latencies``: ms, sorted; ``cpu``: cores; ``memory``: MB before, at its most, at the end."""

    steps: float
    frames: float
    latencies: list[float]
    closed: int
    cpu: float
    memory: tuple[float, float, float]

    def at(self, share: float) -> float:
        return self.latencies[min(len(self.latencies) - 1, int(len(self.latencies) * share))]


def section(site: Site, url: str, members: list[Member], clients: int = CLIENTS) -> Section:
    machine = members[0].name
    rows, aims = [], []
    for title, rate in RATES.items():
        found = watched(site, url, machine, clients, rate)
        before, most, end = found.memory
        note = (
            f"p99 {found.at(0.99):.0f} ms; {found.steps:,.0f} steps/s, {found.frames:.1f} frames/s a client; "
            f"web process {found.cpu:.2f} core, {before:.0f} MB before, {most:.0f} at most, {end:.0f} after; "
            f"{found.closed} closed"
        )
        rows.append(Row(title, found.at(0.5), note=note, unit="ms"))
        aims += [
            Aim(f"step to frame, ms at p99, {title}", LATENCY, found.at(0.99), at_most=True),
            Aim(f"web process, cores, {title}", CPU, found.cpu, at_most=True),
            Aim(f"memory of the web process, times as before, {title}", GROWTH, end / before, at_most=True),
        ]
    note = f"{clients} clients of one machine, {SILENT:.0%} of which never read."
    return Section("From a step to a thousand browsers (median)", rows, note, aims)


def watched(site: Site, url: str, machine: str, clients: int, rate: int, seconds: float = SECONDS) -> Watched:
    mark = load.mark(Engine.from_url(url, prefix=PREFIX), machine)
    with contextlib.ExitStack() as stack:
        firing = stack.enter_context(run_child(load.serve, url, machine, rate))
        each, silent = clients // CROWDS, int(clients * SILENT) // CROWDS
        words = site.address, site.cookies, [f"machine:{machine}"] * each, silent, mark
        crowds = [stack.enter_context(run_child(crowd.serve, *words)) for _ in range(CROWDS)]
        for pipe in crowds:
            receive(pipe)
        firing.send(1.0)  # hub and server settle
        receive(firing)
        before, cpu, started = read_memory(site.pid), read_cpu(site.pid), time.perf_counter()
        for pipe in crowds:
            pipe.send("start")
        firing.send(seconds)
        most = before
        while not firing.poll(0.5):
            most = max(most, read_memory(site.pid))
        steps, marks = receive(firing)
        time.sleep(1)  # the last frames arrive
        took, used, end = time.perf_counter() - started, read_cpu(site.pid) - cpu, read_memory(site.pid)
        answers = []
        for pipe in crowds:
            pipe.send("stop")
            answers.append(receive(pipe))
    frames = sum(answer[0] for answer in answers)
    latencies = sorted(_latencies(marks, [answer[2] for answer in answers]))
    reading = clients - int(clients * SILENT)
    closed = sum(answer[1] for answer in answers)
    return Watched(steps / seconds, frames / took / reading, latencies, closed, used / took, (before, most, end))


def _latencies(marks: dict[int, float], seen: list[dict[int, list[float]]]) -> Iterator[float]:
    """ms from each mark to each client; a client that saw a later count first has seen it then."""
    for found in seen:
        for count, moments in found.items():
            if count in marks:
                yield from ((moment - marks[count]) * 1000 for moment in moments)
