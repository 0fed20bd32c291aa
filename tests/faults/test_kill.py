"""Workers that are killed and stopped at random while they move six thousand jobs."""

import itertools
import os
import random
import threading
import time
from collections import Counter

import pytest

from tests.installation.processes import eventually

from .audit import audit
from .builders import begin, line
from .processes import LONG

pytestmark = pytest.mark.redis

INSTANCES = 3_000  # of two jobs each
WORKERS = 3
KILLS = 12
STOPS = 4
LEASE = 500  # ms
LIMITED = 10  # jobs at a time of each of four groups


class Mischief:
    """Strikes when as many jobs are done as its seed says: mostly a kill, now and then a stop past the lease. The first
    kill hits a worker that holds a job, the others whatever their worker does."""

    def __init__(self, engine, workers, jobs):
        self._engine = engine
        self._random = random.Random(20)
        self._workers = workers
        self._due = sorted(self._random.sample(range(jobs // 20, jobs - jobs // 20), KILLS + STOPS))
        self._stops = set(self._random.sample(range(KILLS + STOPS), STOPS))
        self._struck = 0
        self._thaws = []
        self.killed = self.stopped = 0
        self._running = [workers.start(concurrency=4) for _ in range(WORKERS)]

    def look(self, done):
        if self._struck < len(self._due) and done >= self._due[self._struck]:
            victim = self._random.choice(self._running)
            if self._struck in self._stops:
                self._stop(victim)
            else:
                self._kill(victim)
            self._struck += 1

    def _kill(self, victim):
        if not self.killed:
            victim = self._catch()
        victim.kill()
        self._running.remove(victim)
        self._running.append(self._workers.start(concurrency=4))
        self.killed += 1

    def _catch(self):
        """Stop a worker that holds a job. Some may not have begun yet."""
        caught = []

        def try_all():
            caught.extend(itertools.islice(filter(self._is_caught, self._running), 1))
            return caught

        eventually(try_all, "one holds a job when it is stopped", LONG)
        return caught[0]

    def _is_caught(self, worker):
        """Stop a worker; let it go on where it holds no job."""
        worker.freeze()
        os.waitid(os.P_PID, worker.pid, os.WSTOPPED)
        self._engine.client.ping()  # what the worker sent before is carried out before the next call
        leased = self._engine.jobs("line", "jobs", place="leased", limit=500)
        holds = any(f"-{worker.pid}-" in job.worker for job in leased)
        if not holds:
            worker.thaw()
        return holds

    def _stop(self, victim):
        victim.freeze()
        self._thaws.append(threading.Timer(3 * LEASE / 1000, victim.thaw))
        self._thaws[-1].start()
        self.stopped += 1

    def end(self, engine):
        """Whoever was stopped has gone on, and found its jobs done by others; each leaves in order."""
        for thaw in self._thaws:
            thaw.join()
        running = {worker.pid for worker in self._running}
        eventually(lambda: running <= {row.pid for row in engine.workers()}, "the last ones are there, too", LONG)
        for worker in self._running:
            worker.finish()


@pytest.mark.parametrize(("src", "limited"), [("quick", 0), ("together", LIMITED)])
def test_six_thousand_jobs_through_workers_killed_at_random(own_engine, workers, src, limited):
    own_engine.publish(line(src, src, lease=LEASE, limited=limited))
    begin(own_engine, (f"i{number}" for number in range(INSTANCES)))
    mischief = Mischief(own_engine, workers, 2 * INSTANCES)
    deadline = time.monotonic() + 200
    while (done := own_engine.stats("line")["jobs"].completed) < 2 * INSTANCES:
        mischief.look(done)
        if limited:
            leased = own_engine.jobs("line", "jobs", place="leased", limit=100)
            assert max(Counter(job.group for job in leased).values(), default=0) <= limited
        assert time.monotonic() < deadline, f"{done} jobs done: {own_engine.queues('line')}"
        time.sleep(0.01)
    mischief.end(own_engine)
    eventually(lambda: not any(own_engine.queues("line")["jobs"].values()), "no job is left")
    found = audit(own_engine, "line")
    assert (mischief.killed, mischief.stopped) == (KILLS, STOPS)
    assert found.states == {"done": INSTANCES}
    assert len(found.endings) == 2 * INSTANCES
    assert {row["moved"] for row in found.instances.values()} == {"2"}
    assert own_engine.live("line").flow == {"1:t1": INSTANCES, "1:t3": INSTANCES}
    stats = own_engine.stats("line")["jobs"]
    assert stats.completed == 2 * INSTANCES
    assert stats.lost > 0, "the first kill hit a worker that held a job"
