"""A Redis that is full: it takes no writes until there is room."""

import os
import signal

import pytest

from machines.engine import EngineUnavailable
from tests.installation.processes import eventually

from .audit import audit
from .builders import begin, line
from .processes import LONG, wait_for

pytestmark = pytest.mark.redis

JOBS = 4


def fill(engine, full):
    """From now on each write is answered with OOM, or with ``full`` false none is."""
    engine.client.config_set("maxmemory", 1 if full else 0)


def test_what_is_finished_meanwhile_is_kept_and_completed_when_there_is_room(own_engine, workers):
    own_engine.publish(line("stubborn", lease=20_000))
    begin(own_engine, (f"i{number}" for number in range(JOBS)))
    worker = workers.start(concurrency=JOBS)
    eventually(lambda: own_engine.client.llen("begun") == JOBS, "all jobs have begun", LONG)
    os.kill(worker.pid, signal.SIGSTOP)  # its jobs end once the memory is full, and not before
    own_engine.client.rpush(f"go:{worker.pid}", *range(JOBS))
    fill(own_engine, True)
    os.kill(worker.pid, signal.SIGCONT)
    refused = own_engine.client.info("errorstats").get("errorstat_OOM", {}).get("count", 0)
    with pytest.raises(EngineUnavailable, match="out of memory"):
        own_engine.create("line", "refused")
    eventually(lambda: _refusals(own_engine) > refused + 3, "the worker's calls are refused", LONG)
    held = audit(own_engine, "line")
    assert (held.states, held.places) == ({"step0": JOBS}, {"leased": JOBS})
    fill(own_engine, False)
    wait_for(own_engine, JOBS)
    assert f"{JOBS} completed" in worker.finish()
    assert audit(own_engine, "line").states == {"done": JOBS}
    assert own_engine.stats("line")["jobs"].taken == JOBS, "no job was done twice"


def _refusals(engine):
    return engine.client.info("errorstats").get("errorstat_OOM", {}).get("count", 0)


def test_an_idle_worker_takes_work_again_when_there_is_room(own_engine, workers):
    own_engine.publish(line("quick"))
    worker = workers.start()
    begin(own_engine, ["before"])
    wait_for(own_engine, 1)
    begin(own_engine, [])
    fill(own_engine, True)
    refused = _refusals(own_engine)
    eventually(lambda: _refusals(own_engine) > refused, "the worker is refused", LONG)
    fill(own_engine, False)
    begin(own_engine, ["after"])
    wait_for(own_engine, 2)
    worker.finish()
    assert audit(own_engine, "line").states == {"done": 2}
