"""One worker command with one process and with several: how many jobs a second all of them work off.

A process sees only its own jobs, so the jobs that are still open are counted, from a tenth of them done to nine
tenths. All processes have started before: they are halted while the jobs are enqueued.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from benchmarks.report import Row, Section
from benchmarks.rounds import interleave

from .contenders import Contender
from .stage import Stage

TITLE = "Several worker processes on the cores that they share with the server"
NUMBERS = (1, 4)
PATIENCE = 120.0  # seconds
LOOK = 0.002


def measure(stage: Stage, contenders: Sequence[Contender], share: float, rounds: int) -> Section:
    """The command of a contender is started once for each process; of ours one command starts them all."""
    runs = {_name(each, n): partial(_measure, stage, each, n, share) for each in contenders for n in NUMBERS}
    found, rows = interleave(rounds, runs), []
    for each in contenders:
        one, many = (found[_name(each, number)] for number in NUMBERS)
        rows += [Row(one.name, one.rate), Row(many.name, many.rate, {"one process": many.against(one)})]
    return Section(TITLE, rows, "All have started before; counted from a tenth of the jobs done to nine tenths.")


def _name(contender: Contender, number: int) -> str:
    return f"{contender.title}: {number} {'process' if number == 1 else 'processes'}"


def _measure(stage: Stage, contender: Contender, number: int, share: float) -> float:
    jobs = max(1000, int(contender.jobs * share))
    commands = [contender] * number
    if contender.ours:
        commands = [replace(contender, work=(*contender.work, "--processes", str(number)))]
    stage.clear(contender)
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(stage.worker(command, jobs + 1)) for command in commands]
        for worker in workers:
            worker.settle()
        for worker in workers:
            worker.halt()
        stage.produce(contender, "many", jobs)
        for worker in workers:
            worker.go_on()
        began, first = _wait(stage, contender, jobs * 9 // 10)
        ended, last = _wait(stage, contender, jobs // 10)
        stage.wait_finished(contender, jobs)
    return (first - last) / (ended - began)


def _wait(stage: Stage, contender: Contender, left: int) -> tuple[float, int]:
    """Waits until at most so many jobs are open; answers the moment and how many are."""
    deadline = time.monotonic() + PATIENCE
    while (now := stage.open(contender)) > left:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{contender.title}: {now} jobs are still open")
        time.sleep(LOOK)
    return time.monotonic(), now
