"""A queue of a million jobs: as fast when it is full as when it is nearly empty?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

from benchmarks.report import Row, Section

from .contenders import Contender
from .stage import Stage

TITLE = "A long queue, worked off"
SHORT = 1_000  # jobs of a queue that is not long
TAKES, BATCH = 25, 100
SHARE = 20  # the first and the last of so many parts are compared: 50,000 of a million


class Million:
    def __init__(self, stage: Stage, contenders: Sequence[Contender], jobs: int) -> None:
        self._stage = stage
        self._contenders = contenders
        self._jobs = jobs

    def section(self) -> Section:
        rows = [row for each in self._contenders for row in self._rows(each)]
        return Section(TITLE, rows, f"{self._jobs:,} jobs enqueued beforehand, one worker process.")

    def _rows(self, contender: Contender) -> list[Row]:
        takes = self._takes(contender, SHORT) if contender.ours else []
        self._stage.clear(contender)
        self._stage.produce(contender, "many", self._jobs)
        if contender.ours:
            takes += self._takes(contender, self._jobs, takes[0].rate)
        with self._stage.worker(contender, self._jobs) as worker:
            moments = worker.stamps().moments
            self._stage.wait_finished(contender, self._jobs)
        first, last = ends(moments, self._jobs // SHARE)
        whole = (len(moments) - 1) / ((moments[-1] - moments[0]) / 1e9)
        return [
            Row(f"{contender.title}: the first {self._jobs // SHARE:,}", first),
            Row(f"{contender.title}: the last {self._jobs // SHARE:,}", last, {"the first": last / first}),
            Row(f"{contender.title}: all", whole),
            *takes,
        ]

    def _takes(self, contender: Contender, waiting: int, short: float = 0.0) -> list[Row]:
        """How long one call that takes a hundred jobs lasts; they go back afterwards."""
        if not short:
            self._stage.clear(contender)
            self._stage.produce(contender, "many", waiting)
        found = []
        for _ in range(TAKES):
            began = time.perf_counter()
            jobs = self._stage.take(BATCH)
            found.append((time.perf_counter() - began) * 1000)
            self._stage.hand_back(jobs)
        ratios = {f"with {SHORT:,} waiting": median(found) / short} if short else {}
        return [Row(f"{contender.title}: a take of {BATCH} with {waiting:,} waiting", median(found), ratios, unit="ms")]


def ends(moments: Sequence[int], count: int) -> tuple[float, float]:
    """Jobs a second among the first ``count``, and among the last."""
    span = min(count, len(moments) - 1)
    return span / ((moments[span] - moments[0]) / 1e9), span / ((moments[-1] - moments[-1 - span]) / 1e9)
