"""A queue of a million jobs: as fast when it is full as when it is nearly empty?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from benchmarks.report import Row, Section

from .contenders import Contender
from .stage import Stage

TITLE = "A long queue, worked off"
SHORT = 1_000  # jobs of a queue that is not long
TAKES, BATCH = 25, 100
SHARE = 20  # the first and the last of so many parts are compared: 50,000 of a million


def measure(stage: Stage, contenders: Sequence[Contender], jobs: int) -> Section:
    rows = [row for each in contenders for row in _measure(stage, each, jobs)]
    return Section(TITLE, rows, f"{jobs:,} jobs enqueued beforehand, one worker process.")


def _measure(stage: Stage, contender: Contender, jobs: int) -> list[Row]:
    takes = []
    for waiting in (SHORT, jobs) if contender.ours else (jobs,):
        stage.clear(contender)
        stage.produce(contender, "many", waiting)
        if contender.ours:
            takes.append(Row(f"a take of {BATCH} with {waiting:,} waiting", _take(stage), unit="ms"))
    if takes:
        takes[1].ratios[f"with {SHORT:,} waiting"] = takes[1].rate / takes[0].rate
    with stage.worker(contender, jobs) as worker:
        moments = worker.stamps().moments
        stage.wait_finished(contender, jobs)
    first, last = ends(moments, jobs // SHARE)
    rows = [
        Row(f"the first {jobs // SHARE:,}", first),
        Row(f"the last {jobs // SHARE:,}", last, {"the first": last / first}),
        Row("all", (len(moments) - 1) / ((moments[-1] - moments[0]) / 1e9)),
    ]
    return [replace(row, title=f"{contender.title}: {row.title}") for row in (*rows, *takes)]


def _take(stage: Stage) -> float:
    """How many ms one call that takes a hundred jobs lasts; they go back afterwards."""
    found = []
    for _ in range(TAKES):
        began = time.perf_counter()
        jobs = stage.take(BATCH)
        found.append((time.perf_counter() - began) * 1000)
        stage.hand_back(jobs)
    return median(found)


def ends(moments: Sequence[int], count: int) -> tuple[float, float]:
    """Jobs a second among the first ``count``, and among the last."""
    span = min(count, len(moments) - 1)
    return span / ((moments[span] - moments[0]) / 1e9), span / ((moments[-1] - moments[-1 - span]) / 1e9)
