"""One slow handler among fast ones: does it hold them up?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from benchmarks.report import Row, Section
from benchmarks.rounds import interleave

from .contenders import Contender
from .stage import Stage
from .worker import Stamped

TITLE = "One handler that sleeps two seconds among a thousand that do nothing"
JOBS = 1000
SECONDS = 2.0


def measure(stage: Stage, contenders: Sequence[Contender], rounds: int) -> Section:
    found = interleave(rounds, {each.title: partial(_measure, stage, each) for each in contenders})
    rows = [Row(title, pauses.rate, unit="ms") for title, pauses in found.items()]
    note = "Pause: the longest time without a start, while one job of a thousand sleeps two seconds."
    return Section(TITLE, rows, note)


def _measure(stage: Stage, contender: Contender) -> float:
    stage.clear(contender)
    stage.produce(contender, "mixed", JOBS, SECONDS)
    with stage.worker(contender, JOBS + 1) as worker:
        return longest_pause(worker.stamps())


def longest_pause(stamped: Stamped) -> float:
    """ms between two starts of fast jobs, counted from the start of the slow one."""
    began = next(moment for moment, noted in stamped.jobs if moment not in stamped.fast)
    later = [began, *(moment for moment in stamped.fast if moment > began)]
    return max((after - before for before, after in pairwise(later)), default=0) / 1e6
