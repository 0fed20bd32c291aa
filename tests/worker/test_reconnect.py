"""Redis goes away under a worker and comes back."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import pytest

from machines.conf.server import Server
from machines.engine import Engine, errors
from machines.worker.intake.bell_listener import BellListener
from machines.worker.intake.fetcher import Fetcher, QueueWaiter
from machines.worker.intake.served_queues import ServedQueues
from tests.installation.processes import eventually

from . import builders
from .builders import Running, places, registry_of

pytestmark = pytest.mark.redis


@pytest.fixture
def server():
    """A server of this test's own, to be stopped and started."""
    with tempfile.TemporaryDirectory(prefix="sb-") as folder:
        server = Server(Path(folder)).start()
        yield server
        server.stop()


@pytest.fixture
def own_engine(server):
    engine = Engine.from_url(server.url)
    engine.publish(builders.errand())
    yield engine
    engine.client.close()


def done(engine, id):
    return engine.get("errand", id).state == "done"


def test_an_idle_worker_takes_work_again_after_a_restart(server, own_engine):
    with Running(own_engine, registry_of(run=print)):
        own_engine.create("errand", "before")
        eventually(lambda: done(own_engine, "before"), "the job before the restart is done")
        server.stop()
        server.start()
        own_engine.create("errand", "after")
        eventually(lambda: done(own_engine, "after"), "the job after the restart is done")


def test_a_handler_that_finishes_while_redis_is_away_is_not_run_again(server, own_engine):
    begun, let, runs = threading.Event(), threading.Event(), []

    def handler(job):
        runs.append(job.attempt)
        begun.set()
        assert let.wait(60)

    own_engine.create("errand", "e1")
    with Running(own_engine, registry_of(run=handler)):
        assert begun.wait(60)
        server.stop()
        let.set()
        server.start()
        eventually(lambda: done(own_engine, "e1"), "the job is done")
    assert (runs, places(own_engine)) == ([1], {})


def test_a_worker_started_before_redis_waits_for_it(server, own_engine):
    own_engine.create("errand", "e1")
    server.stop()
    with Running(own_engine, registry_of(run=print)):
        server.start()
        eventually(lambda: done(own_engine, "e1"), "the job is done")


def test_a_connection_cut_while_waiting_on_the_bell_is_made_anew(own_engine):
    with Running(own_engine, registry_of(run=print), block=3600, rescan=3600) as worker:
        eventually(lambda: worker.served_queues.served and _waiting(own_engine), "the worker hears the bells")
        own_engine.client.client_kill_filter(_id=_waiting(own_engine)[0]["id"])
        own_engine.create("errand", "e1")
        eventually(lambda: done(own_engine, "e1"), "the job is done")


def _waiting(engine):
    return [client for client in engine.client.client_list() if client["cmd"] == "ssubscribe"]


def test_a_worker_that_starts_while_redis_is_away_does_not_take_it_for_back(server, own_engine):
    """A look that failed counts as none: with no queues known yet, nothing else would ask Redis meanwhile."""
    served_queues = ServedQueues(own_engine, registry_of(run=print))
    waiter = QueueWaiter(BellListener(own_engine), 0.1)
    fetcher = Fetcher(own_engine, served_queues, waiter, "alice", rescan=60)
    server.stop()
    for _ in range(2):
        with pytest.raises(errors.EngineUnavailable):
            fetcher.look()
    server.start()
    own_engine.create("errand", "e1")
    assert fetcher.look() is True
