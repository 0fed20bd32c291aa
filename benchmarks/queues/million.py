"""A queue of a million jobs: as fast when it is full as when it is nearly empty?"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.queues.contenders import Contender
from benchmarks.queues.stage import Stage
from benchmarks.report import Row, Section

TITLE = "A long queue, worked off"
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
        self._stage.clear(contender)
        self._stage.produce(contender, "many", self._jobs)
        with self._stage.worker(contender, self._jobs) as worker:
            moments = worker.stamps().moments
            self._stage.wait_finished(contender, self._jobs)
        first, last = ends(moments, self._jobs // SHARE)
        whole = (len(moments) - 1) / ((moments[-1] - moments[0]) / 1e9)
        return [
            Row(f"{contender.title}: the first {self._jobs // SHARE:,}", first),
            Row(f"{contender.title}: the last {self._jobs // SHARE:,}", last, {"the first": last / first}),
            Row(f"{contender.title}: all", whole),
        ]


def ends(moments: Sequence[int], count: int) -> tuple[float, float]:
    """Jobs a second among the first ``count``, and among the last."""
    span = min(count, len(moments) - 1)
    return span / ((moments[span] - moments[0]) / 1e9), span / ((moments[-1] - moments[-1 - span]) / 1e9)
