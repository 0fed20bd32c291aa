"""Plays inputs one after the other and keeps what has to be told of them."""

from __future__ import annotations

import heapq
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from .cases import Case, source
from .kinds import Kind
from .results import Result
from .stage import Stage

AGAIN = 9  # times that an input is played again which held the server for too long: the shortest counts


@dataclass(order=True)
class Slow:
    """A call that held the server for ``ms``."""

    ms: float
    index: int
    function: str = field(compare=False)
    case: Case = field(compare=False)


@dataclass
class Wrong:
    """An input that broke promises, and which."""

    index: int
    why: list[str]
    case: Case


@dataclass
class Report:
    """What came of a run."""

    inputs: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[Wrong] = field(default_factory=list)
    slow: list[Slow] = field(default_factory=list)


class Runner:
    """``limit``: ms that no call may hold the server for; None asks for no time at all. ``slowest``: how many of the
    slowest calls are kept."""

    def __init__(self, stage: Stage, kind: Kind, *, limit: float | None = None, slowest: int = 10) -> None:
        self.stage, self.kind, self.limit, self.slowest = stage, kind, limit, slowest
        self.report = Report()

    def run(self, seed: int, indexes: Iterable[int], told: Callable[[Report], None] = lambda report: None) -> Report:
        for index in indexes:
            self.one(index, self.kind.draw(source(self.kind.name, seed, index)))
            told(self.report)
        return self.report

    def one(self, index: int, case: Case) -> Result:
        result = self._played(case)
        function, ms = result.slowest
        if self.limit is not None and ms > self.limit and not result.wrong:
            ms = self._shortest(case, function, ms)
            if ms > self.limit:
                result.refuse(f"{function} held the server for {ms:.0f} ms")
        self.report.inputs += 1
        self.report.answers += result.answers
        if result.wrong:
            self.report.wrong.append(Wrong(index, result.wrong, case))
        if function:
            heapq.heappush(self.report.slow, Slow(ms, index, function, case))
            while len(self.report.slow) > self.slowest:
                heapq.heappop(self.report.slow)
        return result

    def _shortest(self, case: Case, function: str, ms: float) -> float:
        """How long it takes on a machine that does nothing else, as far as this one ever does nothing else: a virtual
        processor that is taken away meanwhile counts as one that works."""
        for _ in range(AGAIN):
            ms = min(ms, self._played(case).held.get(function, 0.0))
            if self.limit is not None and ms <= self.limit:
                break
        return ms

    def _played(self, case: Case) -> Result:
        self.stage.forget()
        try:
            result = self.kind.play(self.stage, case)
        except Exception:  # whatever it is, it is what we are looking for
            result = Result(wrong=[f"nobody expects this: {traceback.format_exc(limit=-6)}"])
        if not self.stage.settled():
            result.refuse("the server does not come back")
        result.held = self.stage.held()
        return result
