"""``python -m benchmarks.aio``: fires by ``AsyncEngine`` against one thread and 50 threads of ``Engine``.

All contenders run in every round, in one process, on the same server and instances. CPU of a fire is that of the client
process, and that of the server. Writes ASYNC.md.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from statistics import median
from typing import Any

from machines.engine import AsyncEngine, Engine

from . import report, rounds, stage

PAGE = Path(__file__).with_name("ASYNC.md")
TOGGLE = {
    "id": "toggle",
    "context": {"by": ""},
    "initial": "Off",
    "states": {
        "Off": {"on": {"flip": {"target": "On", "actions": {"set": {"by": "event.by"}}}}},
        "On": {"on": {"flip": {"target": "Off", "actions": {"set": {"by": "event.by"}}}}},
    },
}
INSTANCES = 1000
ONE, THREADS, FEW, MANY = "Engine, 1 thread", "Engine, 50 threads", "AsyncEngine, 50 tasks", "AsyncEngine, 500 tasks"
ALONE = "AsyncEngine, 1 task"


class Contest:
    """The contenders, and what each spent: name -> µs of CPU for each fire, of the client and of the server."""

    def __init__(self, url: str, fires: int) -> None:
        self.url = url
        self.fires = fires
        self.engine = Engine.from_url(url, prefix=stage.PREFIX)
        self.client_cpu: dict[str, list[float]] = {}
        self.server_cpu: dict[str, list[float]] = {}

    def set_up(self) -> None:
        self.engine.publish(TOGGLE)
        for number in range(INSTANCES):
            self.engine.create("toggle", f"t{number}")

    def contenders(self) -> dict[str, Callable[[], float]]:
        return {
            ONE: lambda: self._in_threads(ONE, 1),
            THREADS: lambda: self._in_threads(THREADS, 50),
            ALONE: lambda: asyncio.run(self._in_tasks(ALONE, 1)),
            FEW: lambda: asyncio.run(self._in_tasks(FEW, 50)),
            MANY: lambda: asyncio.run(self._in_tasks(MANY, 500)),
        }

    def _in_threads(self, name: str, count: int) -> float:
        def work(number: int) -> None:
            for each in range(self.fires // count):
                self.engine.fire("toggle", f"t{(number * 20 + each) % INSTANCES}", "flip", {"by": "card"})

        threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
        spent = self._start()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self._stop(name, spent)

    async def _in_tasks(self, name: str, count: int) -> float:
        async with AsyncEngine.from_url(self.url, prefix=stage.PREFIX) as engine:

            async def work(number: int) -> None:
                for each in range(self.fires // count):
                    await engine.fire("toggle", f"t{(number * 2 + each) % INSTANCES}", "flip", {"by": "card"})

            await engine.get("toggle", "t0")
            tasks: list[Coroutine[Any, Any, None]] = [work(number) for number in range(count)]
            spent = self._start()
            await asyncio.gather(*tasks)
            return self._stop(name, spent)

    def _start(self) -> tuple[float, float, float]:
        return self._server(), _client(), time.perf_counter()

    def _stop(self, name: str, begun: tuple[float, float, float]) -> float:
        took, client, server = time.perf_counter() - begun[2], _client() - begun[1], self._server() - begun[0]
        self.client_cpu.setdefault(name, []).append(1e6 * client / self.fires)
        self.server_cpu.setdefault(name, []).append(1e6 * server / self.fires)
        return self.fires / took

    def _server(self) -> float:
        info = self.engine.client.info("cpu")
        return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def _client() -> float:
    spent = os.times()
    return spent.user + spent.system


def measure(url: str, fires: int, count: int) -> report.Section:
    contest = Contest(url, fires)
    contest.set_up()
    found = rounds.interleave(count, contest.contenders())
    rows = []
    for name, measured in found.items():
        ratios = {peer: measured.against(found[peer]) for peer in (ONE, THREADS) if peer != name}
        spent = f"CPU of a fire: client {median(contest.client_cpu[name]):.0f} µs, server "
        rows.append(report.Row(name, measured.rate, ratios, f"{spent}{median(contest.server_cpu[name]):.0f} µs"))
    contest.engine.client.close()
    least = found[FEW].against(found[THREADS])
    return report.Section(
        "Fires a second of one process",
        rows,
        "Client and server share the cores. Where the rate times the server's CPU of a fire is near a second, the "
        "server is the limit, else the client.",
        aims=[report.Aim("AsyncEngine with 50 tasks against 50 threads of Engine", 1.0, least)],
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.aio", description=__doc__)
    parser.add_argument("--url", help="a server to use instead of one of its own; only keys below bench: are touched")
    parser.add_argument("--fires", type=int, default=10_000, help="of each contender in each round")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    begun = time.perf_counter()
    with stage.server(given.url) as url:
        section = measure(url, given.fires, given.rounds)
        client = Engine.from_url(url).client
        name = stage.name_of(client)
        client.close()
    print(report.text([section]))
    took, load = time.perf_counter() - begun, ", ".join(f"{one:.1f}" for one in os.getloadavg())
    notes = [f"Load average at the end: {load}."]
    report.write([section], section.aims, name, took, path=PAGE, command="python -m benchmarks.aio", notes=notes)


if __name__ == "__main__":
    main()
