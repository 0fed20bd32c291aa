"""One slow handler among fast ones: does it hold them up?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from benchmarks.report import Row, Section

from .contenders import Contender
from .stage import Stage
from .worker import Stamped

TITLE = "One handler that sleeps two seconds among a thousand that do nothing"
JOBS = 1000
SECONDS = 2.0


class Mixed:
    def __init__(self, stage: Stage, contenders: Sequence[Contender]) -> None:
        self._stage = stage
        self._contenders = contenders

    def section(self, rounds: int) -> Section:
        found: dict[str, list[float]] = {each.title: [] for each in self._contenders}
        for number in range(rounds):
            for each in reversed(self._contenders) if number % 2 else self._contenders:
                found[each.title].append(self._longest(each))
        rows = [Row(title, median(pauses), unit="ms") for title, pauses in found.items()]
        return Section(
            TITLE, rows, "Pause: the longest time without a start, while one job of a thousand sleeps two seconds."
        )

    def _longest(self, contender: Contender) -> float:
        self._stage.clear(contender)
        self._stage.produce(contender, "mixed", JOBS, SECONDS)
        with self._stage.worker(contender, JOBS + 1) as worker:
            stamped = worker.stamps()
        return longest_pause(stamped)


def longest_pause(stamped: Stamped) -> float:
    """ms between two starts of fast jobs, counted from the start of the slow one."""
    began = next(moment for moment, noted in stamped.jobs if moment not in stamped.fast)
    later = [began, *(moment for moment in stamped.fast if moment > began)]
    return max((after - before for before, after in pairwise(later)), default=0) / 1e6
