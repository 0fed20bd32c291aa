"""The server all contenders share, emptied between two measurements: it is always one of the run's own."""

from __future__ import annotations

import os
import subprocess
import time

import redis

from machines.engine import Engine, Job

from .contenders import Contender
from .ours import machine
from .worker import Worker

PATIENCE = 60.0  # seconds for the last jobs to be acknowledged


class Stage:
    def __init__(self, url: str) -> None:
        self.url = url
        self.client = redis.Redis.from_url(url, decode_responses=True)
        self._engine = Engine.from_url(url, prefix=machine.PREFIX)

    def close(self) -> None:
        self.client.close()
        self._engine.client.close()

    def clear(self, contender: Contender) -> None:
        """Nothing is left but the functions, and the machine of ours."""
        self.client.flushall()
        if contender.ours:
            self._engine.publish(machine.DEFINITION)

    def produce(self, contender: Contender, *order: object) -> None:
        """Runs the contender's producer to its end: see ``peers/produce.py``."""
        command = [*contender.produce, *map(str, order)]
        environment = os.environ | contender.environment | {"BENCH_URL": self.url}
        done = subprocess.run(command, cwd=contender.folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{contender.title}: enqueueing failed:\n{(done.stdout + done.stderr)[-2000:]}")

    def worker(self, contender: Contender, jobs: int) -> Worker:
        return Worker(contender, self.url, jobs)

    def take(self, count: int) -> list[Job]:
        """Jobs of ours, taken by this process."""
        return self._engine.take(machine.NAME, machine.QUEUE, "bench", count=count)

    def hand_back(self, jobs: list[Job]) -> None:
        for job in jobs:
            self._engine.hand_back(job)

    def open(self, contender: Contender) -> int:
        """How many jobs are not finished."""
        pipeline = self.client.pipeline(transaction=False)
        for words in contender.open:
            pipeline.execute_command(*words)
        return sum(pipeline.execute())

    def wait_finished(self, contender: Contender, jobs: int) -> int:
        """Waits until no job is open; answers that moment, in ns of the monotonic clock."""
        deadline = time.monotonic() + PATIENCE
        while left := self.open(contender):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{contender.title}: {left} jobs are never finished")
            time.sleep(0.002)
        moment = time.monotonic_ns()
        if contender.moves and (done := self._engine.counts(machine.NAME)[machine.DONE]) != jobs:
            raise RuntimeError(f"{contender.title}: {done} of {jobs} instances have moved")
        return moment

    def commands(self) -> int:
        """Commands the server has ever run, those inside functions and scripts included."""
        rows = self.client.info("commandstats")
        return sum(int(row["calls"]) for name, row in rows.items() if name != "cmdstat_info")
