"""Jobs a second: enqueued beforehand, then one worker, timed from a tenth of them on to the last acknowledgement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.report import Row, Section
from benchmarks.rounds import interleave

from .contenders import Contender
from .stage import Stage

TITLE = "Jobs a second, one worker process, jobs that do nothing"


@dataclass(slots=True)
class Spent:
    """CPU for one job, in µs, of each round."""

    worker: list[float] = field(default_factory=list)
    server: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        return f"worker {median(self.worker):,.0f}, server {median(self.server):,.0f}"


class Throughput:
    def __init__(self, stage: Stage, contenders: Sequence[Contender], share: float = 1.0) -> None:
        self._stage = stage
        self._contenders = contenders
        self._share = share
        self._spent = {each.title: Spent() for each in contenders}

    def section(self, rounds: int) -> Section:
        found = interleave(rounds, {each.title: self._measured(each) for each in self._contenders})
        peers = {each.title: found[each.title] for each in self._contenders if not each.ours}
        best = max(peers.values(), key=lambda peer: peer.rate, default=None)
        rows = []
        for each in self._contenders:
            row = Row(each.title, found[each.title].rate, note=str(self._spent[each.title]))
            if each.ours and best is not None:
                row.ratios["the fastest peer"] = found[each.title].against(best)
            rows.append(row)
        note = f"Worker, server: µs of CPU a job.{f' The fastest peer is {best.name}.' if best else ''}"
        return Section(TITLE, rows, note)

    def _measured(self, contender: Contender) -> Callable[[], float]:
        spent, jobs = self._spent[contender.title], max(100, int(contender.jobs * self._share))

        def run() -> float:
            self._stage.clear(contender)
            self._stage.produce(contender, "many", jobs)
            served = self._stage.cpu()
            with self._stage.worker(contender, jobs) as worker:
                stamped = worker.stamps()
                ended = self._stage.wait_finished(contender, jobs)
            counted = jobs - stamped.warm
            spent.worker.append(stamped.cpu / 1000 / counted)
            spent.server.append((self._stage.cpu() - served) * 1e6 / jobs)
            return counted / ((ended - stamped.moments[stamped.warm]) / 1e9)

        return run
