"""From enqueueing to the start of the handler, on a worker that has nothing else to do."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.report import Row, Section

from .contenders import Contender
from .stage import Stage

TITLE = "Enqueue to start on an idle worker"
JOBS = 200  # in one round
WARM = 20  # of them, not counted
MEAN = 40  # ms between two jobs: every worker here is done with one long before the next


class Latency:
    """All rounds of a contender are put together: a p99 of few values would be the worst of them."""

    def __init__(self, stage: Stage, contenders: Sequence[Contender], jobs: int = JOBS) -> None:
        self._stage = stage
        self._contenders = contenders
        self._jobs = jobs

    def section(self, rounds: int) -> Section:
        waits: dict[str, list[float]] = {each.title: [] for each in self._contenders}
        for number in range(rounds):
            for each in reversed(self._contenders) if number % 2 else self._contenders:
                waits[each.title] += self._waits(each)
        rows = [
            row
            for title, found in waits.items()
            for row in (
                Row(f"{title}: p50", at(found, 0.50), unit="ms"),
                Row(f"{title}: p99", at(found, 0.99), unit="ms"),
            )
        ]
        note = f"{len(next(iter(waits.values())))} jobs, one every {MEAN} ms or so, from enqueue to start."
        return Section(TITLE, rows, note)

    def _waits(self, contender: Contender) -> list[float]:
        self._stage.clear(contender)
        self._stage.produce(contender, "many", 1)
        with self._stage.worker(contender, self._jobs + 1) as worker:
            self._stage.wait_finished(contender, 1)  # it has started
            self._stage.produce(contender, "paced", self._jobs, MEAN)
            stamped = worker.stamps()
        return [(started - sent) / 1e6 for started, sent in stamped.jobs[WARM + 1 :]]


def at(values: Sequence[float], share: float) -> float:
    """The value below which that share of the values lies: the nearest one that was measured."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]
