"""A batch whose workers are killed while they run its jobs ends once."""

import os
import random
import time
from itertools import count

import pytest

from tests.engine.builders import door, publish
from tests.installation.processes import eventually

from .processes import LONG

pytestmark = pytest.mark.redis

JOBS = int(os.environ.get("SIGNALBOX_FAULT_JOBS", "5000"))
WORKERS = 2
KILLS = 12
FAILED = 50  # jobs that die: they have one attempt, and a kill or a handler that raises ends it


def items(number, **facts):
    return [
        {"machine": "door", "src": "quick", "queue": "jobs", "lease": 500, "backoff": 10, "attempts": 50} | facts
    ] * number


@pytest.mark.parametrize("failing", [0, FAILED])
def test_a_batch_of_killed_workers_calls_back_once(own_engine, workers, failing):
    publish(own_engine, door())
    callbacks = {n: {"machine": "door", "src": n, "queue": "after"} for n in ("on_success", "on_failure", "on_end")}
    dying = items(failing, src="fragile", attempts=1)
    batch = own_engine.batch([*items(JOBS - failing), *dying], id="b", **callbacks)
    running = [workers.start(concurrency=4) for _ in range(WORKERS)]
    chance, deadline = random.Random(7), time.monotonic() + 200 + JOBS / 100
    for kill in count(1):
        at = kill * JOBS // (KILLS + 2)
        while (batch := own_engine.get_batch("door", "b")).done < min(at, JOBS - failing) and batch.open:
            assert time.monotonic() < deadline, batch
            time.sleep(0.01)
        if kill > KILLS:
            break
        victim = running.pop(chance.randrange(WORKERS))
        victim.kill()
        running.append(workers.start(concurrency=4))
    eventually(lambda: own_engine.get_batch("door", "b").ended, "the batch ends", LONG)
    for worker in running:
        eventually(lambda pid=worker.pid: pid in {row.pid for row in own_engine.workers()}, "it is there", LONG)
        worker.finish()
    batch, stats = own_engine.get_batch("door", "b"), own_engine.stats("door")["jobs"]
    assert (batch.open, batch.done, batch.failed) == (0, JOBS - failing, failing)
    assert (stats.completed, stats.died) == (JOBS - failing, failing)
    assert stats.lost > 0, "no kill hit a worker that held a job"
    called = own_engine.jobs("door", "after")
    assert [job.src for job in called] == ["on_failure" if failing else "on_success", "on_end"]
    assert {job.input["failed"] for job in called} == {failing}
