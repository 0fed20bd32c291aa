"""Part four: the engine at its limit while a hundred pages watch it live, against none.

The site is the real one, under uvicorn, in a process of its own; the pages are websocket clients in
another, each subscribed to the machine that is being fired at. All of them share this machine's cores
with the server, which real browsers would not: the ratio is on the strict side.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from statistics import median

from . import watchers
from .driver import Driver
from .report import Row, Section
from .rounds import interleave
from .site import Site
from .stage import Stage

PAGES = 100
DEPTH = 16
WARM_UP = 0.5  # seconds of firing before the clock starts: hub and server settle


class Pages:
    def __init__(self, stage: Stage, driver: Driver, seconds: float, site: Site | None = None) -> None:
        """``site``: one that is there already; else its own."""
        self._site = site
        self._stage = stage
        self._driver = driver
        self._seconds = seconds
        self._updates: list[float] = []
        self._costs: dict[str, list[float]] = {"none": [], "open": []}  # µs of the server's CPU for a step

    def section(self, rounds: int) -> Section:
        with (
            contextlib.nullcontext(self._site)
            if self._site
            else Site(self._stage.url, SIGNALBOX_SOCKETS=str(2 * PAGES)) as site
        ):
            pipe = _start(site)
            found = interleave(rounds, {"none": lambda: self._fire("none"), "open": self._with_pages(pipe)})
            pipe.send(None)
        open_, none = found["open"], found["none"]
        return Section(
            "A hundred live pages open",
            [
                Row("fire, no page open", none.rate),
                Row("fire, pages open", open_.rate, {"none open": open_.against(none)}, self._note()),
                self._cost(),
            ],
        )

    def _fire(self, pages: str) -> float:
        self._driver.run("fire", DEPTH, WARM_UP)
        before = self._stage.cpu()
        load = self._driver.run("fire", DEPTH, self._seconds)
        self._costs[pages].append((self._stage.cpu() - before) / load.calls * 1e6)
        return load.rate

    def _cost(self) -> Row:
        """What the server itself spends on a step, reads for the pages included: the same on a busy machine."""
        none, open_ = (median(self._costs[pages]) for pages in ("none", "open"))
        return Row(
            "server's CPU for a step, pages open", open_, {"none open": none / open_}, f"none: {none:.1f} µs", "µs"
        )

    def _with_pages(self, pipe: Pipe) -> Callable[[], float]:
        def run() -> float:
            _ask(pipe, "open")
            started = time.perf_counter()
            rate = self._fire("open")
            took = time.perf_counter() - started
            self._updates.append(_ask(pipe, "close") / PAGES / took)
            return rate

        return run

    def _note(self) -> str:
        return f"each page was shown {median(self._updates):.0f} updates a second"


def _start(site: Site) -> Pipe:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    context.Process(target=watchers.serve, args=(theirs, site.address, site.cookie, PAGES), daemon=True).start()
    theirs.close()
    return ours


def _ask(pipe: Pipe, order: str) -> int:
    pipe.send(order)
    answer = pipe.recv()
    if isinstance(answer, Exception):
        raise answer
    return answer
