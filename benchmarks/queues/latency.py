"""From enqueueing to the start of the handler, on a worker that has nothing else to do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain

from benchmarks.report import Row, Section
from benchmarks.rounds import interleave

from .contenders import Contender
from .stage import Stage

TITLE = "Enqueue to start on an idle worker"
JOBS = 200  # in one round
WARM = 20  # of them, not counted
MEAN = 40  # ms between two jobs: every worker here is done with one long before the next


def measure(stage: Stage, contenders: Sequence[Contender], rounds: int, jobs: int = JOBS) -> Section:
    """All rounds of a contender are put together: a p99 of few values would be the worst of them."""
    found = interleave(rounds, {each.title: partial(_measure, stage, each, jobs) for each in contenders})
    rows = []
    for title, measured in found.items():
        waits = list(chain(*measured.rates))
        rows += [
            Row(f"{title}: p50", at(waits, 0.50), unit="ms"),
            Row(f"{title}: p99", at(waits, 0.99), unit="ms"),
        ]
    note = f"{(jobs - WARM) * rounds} jobs, one every {MEAN} ms or so, from enqueue to start."
    return Section(TITLE, rows, note)


def _measure(stage: Stage, contender: Contender, jobs: int) -> list[float]:
    stage.clear(contender)
    stage.produce(contender, "many", 1)
    with stage.worker(contender, jobs + 1) as worker:
        stage.wait_finished(contender, 1)  # it has started
        stage.produce(contender, "paced", jobs, MEAN)
        stamped = worker.stamps()
    return [(started - sent) / 1e6 for started, sent in stamped.jobs[WARM + 1 :]]


def at(values: Sequence[float], share: float) -> float:
    """The value below which that share of the values lies: the nearest one that was measured."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]
