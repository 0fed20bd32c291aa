"""Jobs a second: enqueued beforehand, then one worker, timed from a tenth of them on to the last acknowledgement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median

from benchmarks.report import Row, Section
from benchmarks.rounds import interleave
from benchmarks.stage import read_server_cpu

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


def measure(stage: Stage, contenders: Sequence[Contender], share: float, rounds: int) -> Section:
    spent = {each.title: Spent() for each in contenders}
    runs = {each.title: partial(_measure, stage, each, share, spent[each.title]) for each in contenders}
    found = interleave(rounds, runs)
    peers = [found[each.title] for each in contenders if not each.ours]
    best = max(peers, key=lambda peer: peer.rate, default=None)
    rows = []
    for each in contenders:
        row = Row(each.title, found[each.title].rate, note=str(spent[each.title]))
        if each.ours and best is not None:
            row.ratios["the fastest peer"] = found[each.title].against(best)
        rows.append(row)
    note = f"Worker, server: µs of CPU a job.{f' The fastest peer is {best.name}.' if best else ''}"
    return Section(TITLE, rows, note)


def _measure(stage: Stage, contender: Contender, share: float, spent: Spent) -> float:
    jobs = max(100, int(contender.jobs * share))
    stage.clear(contender)
    stage.produce(contender, "many", jobs)
    served = read_server_cpu(stage.client)
    with stage.worker(contender, jobs) as worker:
        stamped = worker.stamps()
        ended = stage.wait_finished(contender, jobs)
    counted = jobs - stamped.warm
    spent.worker.append(stamped.cpu / 1000 / counted)
    spent.server.append((read_server_cpu(stage.client) - served) * 1e6 / jobs)
    return counted / ((ended - stamped.moments[stamped.warm]) / 1e9)
