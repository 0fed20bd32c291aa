"""Workers in threads, which note how many jobs of each group run at a time."""

import threading
import time
from collections import Counter

from machines.engine import Engine, Job


class CountedJobs:
    """The jobs of ``errand``, until so many are done. ``most``: group -> jobs that ran at once; ``done``: instance or
    job -> how often it ran."""

    def __init__(self, engine: Engine, until: int) -> None:
        self._engine, self._until = engine, until
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.most_of_all = 0
        self.done: Counter[str] = Counter()

    def run(self, workers: int) -> None:
        threads = [threading.Thread(target=self._work, args=(f"w{number}",)) for number in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self, worker: str) -> None:
        while sum(self.done.values()) < self._until:
            taken = self._engine.take("errand", "work", worker, count=3)
            self._note(taken, 1)
            time.sleep(0.001)  # so that others run, too
            self._note(taken, -1)
            self._engine.complete_many((job, None) for job in taken)

    def _note(self, jobs: list[Job], step: int) -> None:
        with self._lock:
            for job in jobs:
                self._running[job.group] += step
                self.most[job.group] = max(self.most[job.group], self._running[job.group])
                self.done[job.instance or job.id] += step < 0
            self.most_of_all = max(self.most_of_all, self._running.total())
