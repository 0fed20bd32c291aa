"""One worker command with one process and with several: how many jobs a second all of them work off.

A process sees only its own jobs, so the jobs that are still open are counted, from a tenth of them done to nine
tenths. All processes have started before: they are halted while the jobs are enqueued.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from benchmarks.report import Row, Section
from benchmarks.rounds import interleave

from .contenders import Contender
from .stage import Stage

TITLE = "Several worker processes on the cores that they share with the server"
NUMBERS = (1, 4)
PATIENCE = 120.0  # seconds
LOOK = 0.002


class Processes:
    """``contenders``: those whose command is started once for each process; of ours one command starts them all."""

    def __init__(self, stage: Stage, contenders: Sequence[Contender], share: float = 1.0) -> None:
        self._stage = stage
        self._contenders = contenders
        self._share = share

    def section(self, rounds: int) -> Section:
        runs = {
            self._title(each, number): self._measured(each, number) for each in self._contenders for number in NUMBERS
        }
        found = interleave(rounds, runs)
        rows = []
        for each in self._contenders:
            one, many = (found[self._title(each, number)] for number in NUMBERS)
            rows += [Row(one.name, one.rate), Row(many.name, many.rate, {"one process": many.against(one)})]
        return Section(TITLE, rows, "All have started before; counted from a tenth of the jobs done to nine tenths.")

    @staticmethod
    def _title(contender: Contender, number: int) -> str:
        return f"{contender.title}: {number} {'process' if number == 1 else 'processes'}"

    def _measured(self, contender: Contender, number: int) -> Callable[[], float]:
        jobs = max(1000, int(contender.jobs * self._share))
        if contender.ours:
            commands = [replace(contender, work=(*contender.work, "--processes", str(number)))]
        else:
            commands = [contender] * number

        def run() -> float:
            self._stage.clear(contender)
            with contextlib.ExitStack() as stack:
                workers = [stack.enter_context(self._stage.worker(command, jobs + 1)) for command in commands]
                for worker in workers:
                    worker.settle()
                for worker in workers:
                    worker.halt()
                self._stage.produce(contender, "many", jobs)
                for worker in workers:
                    worker.go_on()
                began, first = self._wait(contender, jobs * 9 // 10)
                ended, last = self._wait(contender, jobs // 10)
                self._stage.wait_finished(contender, jobs)
            return (first - last) / (ended - began)

        return run

    def _wait(self, contender: Contender, left: int) -> tuple[float, int]:
        """Waits until at most so many jobs are open; answers the moment and how many are."""
        deadline = time.monotonic() + PATIENCE
        while (now := self._stage.open(contender)) > left:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{contender.title}: {now} jobs are still open")
            time.sleep(LOOK)
        return time.monotonic(), now
