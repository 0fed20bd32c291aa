"""A worker that stands still for longer than its lease, and goes on as if nothing had happened."""

import ctypes
import os
import signal
import sys

import pytest

from tests.installation.processes import eventually

from .audit import audit
from .builders import begin, line
from .processes import LONG, wait_for

pytestmark = pytest.mark.redis


def begun(engine):
    """The process that says it has begun a job."""
    said = []

    def hears():
        said[:] = engine.client.lpop("begun", 1) or []
        return said

    eventually(hears, "somebody begins the job", LONG)
    return int(said[0].split()[0])


def test_what_it_finishes_after_another_did_is_refused(own_engine, workers):
    own_engine.publish(line("stubborn", lease=1000))
    first, second = workers.start(), None
    begin(own_engine, ["a"])
    assert begun(own_engine) == first.pid
    first.freeze()
    second = workers.start()
    assert begun(own_engine) == second.pid, "the second worker got the job when the first one's lease was over"
    own_engine.client.rpush(f"go:{second.pid}", 1)
    wait_for(own_engine, 1)
    before = own_engine.history("line", "a")
    own_engine.client.rpush(f"go:{first.pid}", 1)
    first.thaw()
    eventually(lambda: not own_engine.client.exists(f"go:{first.pid}"), "the first worker went on", LONG)
    assert "1 lost" in first.finish()
    assert "1 completed" in second.finish()
    assert own_engine.history("line", "a") == before
    assert audit(own_engine, "line").instances["a"]["moved"] == "1"


def test_what_it_finishes_while_another_is_at_it_is_refused(own_engine, workers):
    own_engine.publish(line("stubborn", lease=1000))
    first = workers.start()
    begin(own_engine, ["a"])
    begun(own_engine)
    first.freeze()
    second = workers.start()
    begun(own_engine)
    own_engine.client.rpush(f"go:{first.pid}", 1)
    first.thaw()
    eventually(lambda: not own_engine.client.exists(f"go:{first.pid}"), "the first worker went on", LONG)
    assert "1 lost" in first.finish()
    assert own_engine.counts("line")["done"] == 0, "the first worker moved an instance whose job was another's"
    own_engine.client.rpush(f"go:{second.pid}", 1)
    wait_for(own_engine, 1)
    second.finish()
    audit(own_engine, "line")


@pytest.mark.skipif(sys.platform != "linux", reason="a signal to one thread of another process needs Linux")
def test_a_signal_that_another_thread_gets_ends_it(own_engine, workers):
    own_engine.publish(line("stubborn", lease=1000))
    worker = workers.start()
    begin(own_engine, ["a"])
    own_engine.client.rpush(f"go:{begun(own_engine)}", 1)
    wait_for(own_engine, 1)
    other = max(int(task) for task in os.listdir(f"/proc/{worker.pid}/task"))
    assert other != worker.pid
    assert ctypes.CDLL(None).tgkill(worker.pid, other, signal.SIGTERM) == 0
    worker.process.wait(LONG)
    assert "1 completed" in worker.log.read_text()
