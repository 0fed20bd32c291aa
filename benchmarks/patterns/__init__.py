"""Part eight: every pattern against the usual recipe done by hand, from one synchronous client in the same run.

Each module of this package is one pattern, found by its name:

    PEER = "INCR and EXPIRE by hand"           # the recipe that the others are compared with
    PEERS = {"of many": "by hand, of many"}    # another peer for some of them
    AIMS = {"take": 2.0}                       # at least so many times the peer; 1.0 where nothing stands, None: no aim
    LEAST = {"blocks": 1_000_000}              # at least so many operations a second, where that is the aim
    NOTE = "One line about what is compared."  # below the table

    def contenders(stage: Stage) -> dict[str, Callable[[int], None]]:
        ...                                    # sets up; each run(n) then does n operations

``PEERS``, ``AIMS``, ``LEAST`` and ``NOTE`` may be missing. Keys lie below ``stage.PREFIX``; the run removes them. A
contender that holds processes gives its ``run`` a method ``close``, and one that needs longer batches a ``share``.
"""

from __future__ import annotations

import importlib
import pkgutil
import time
from collections.abc import Callable, Sequence
from statistics import median
from types import ModuleType

from benchmarks.report import Aim, Row, Section
from benchmarks.rounds import Measured, interleave
from benchmarks.stage import Stage

NAMES = tuple(sorted(found.name for found in pkgutil.iter_modules(__path__)))
SHARE = 1 / 20  # of a measurement that one batch of operations takes: the clock is looked at no oftener

Run = Callable[[int], None]


class Patterns:
    """``only``: names of modules, all of them where none is named."""

    def __init__(self, stage: Stage, seconds: float, only: Sequence[str] = ()) -> None:
        self._stage = stage
        self._seconds = seconds
        self._only = only or NAMES

    def sections(self, rounds: int) -> list[Section]:
        return [self._section(name, rounds) for name in self._only]

    def _section(self, name: str, rounds: int) -> Section:
        module = importlib.import_module(f"{__name__}.{name}")
        runs = module.contenders(self._stage)
        try:
            trials = {title: Trial(self._stage, run, self._seconds) for title, run in runs.items()}
            found = interleave(rounds, trials)
        finally:
            for run in runs.values():
                getattr(run, "close", lambda: None)()
        rows = [_row(each, found[_peer(module, title)], trials[title].cost) for title, each in found.items()]
        title = f"Pattern: {name.replace('_', ' ')}"
        return Section(title, rows, getattr(module, "NOTE", ""), list(aims(module, title, rows)))


class Trial:
    """Called once a round: operations a second of one contender, and what each cost the server."""

    def __init__(self, stage: Stage, run: Run, seconds: float) -> None:
        self._stage = stage
        self._run = run
        self._seconds = seconds
        self._batch = 0
        self._costs: list[float] = []

    def __call__(self) -> float:
        self._batch = self._batch or self._fitting()
        done, used, started = 0, self._stage.cpu(), time.perf_counter()
        while (took := time.perf_counter() - started) < self._seconds:
            self._run(self._batch)
            done += self._batch
        self._costs.append((self._stage.cpu() - used) / done)
        return done / took

    @property
    def cost(self) -> float:
        """Seconds of the server's CPU for one operation."""
        return median(self._costs)

    def _fitting(self) -> int:
        """How many operations fill a batch. Finding out warms the contender up."""
        batch = 1
        while True:
            started = time.perf_counter()
            self._run(batch)
            if time.perf_counter() - started >= self._seconds * getattr(self._run, "share", SHARE):
                return batch
            batch *= 2


def _peer(module: ModuleType, title: str) -> str:
    """What a contender is compared with; a peer is its own."""
    peers: dict[str, str] = getattr(module, "PEERS", {})
    return title if title in peers.values() else peers.get(title, module.PEER)


def _row(found: Measured, peer: Measured, cost: float) -> Row:
    ratios = {} if found is peer else {peer.name: found.against(peer)}
    return Row(found.name, found.rate, ratios, f"{cost * 1e6:.1f} µs of the server's CPU each")


def aims(module: ModuleType, title: str, rows: Sequence[Row]) -> list[Aim]:
    """Those of one module: every contender but the peer has one, unless the module says None."""
    least, wanted = getattr(module, "LEAST", {}), getattr(module, "AIMS", {})
    _check(module, {row.title for row in rows})
    found = [Aim(f"{row.title} (a second), {title}", least[row.title], row.rate) for row in rows if row.title in least]
    for row in rows:
        bound = wanted.get(row.title, 1.0)
        if row.ratios and bound is not None:
            ((peer, ratio),) = row.ratios.items()
            found.append(Aim(f"{row.title} against {peer}, {title}", bound, ratio))
    return found


def _check(module: ModuleType, titles: set[str]) -> None:
    """An aim under a title that no contender has would never be missed."""
    peers = getattr(module, "PEERS", {})
    named = {module.PEER, *peers, *peers.values(), *getattr(module, "AIMS", {}), *getattr(module, "LEAST", {})}
    if strays := named - titles:
        raise LookupError(f"{module.__name__} has no contender {', '.join(sorted(strays))}; it has {sorted(titles)}")
