"""A Redis that is killed and comes back on its append-only file."""

import itertools
import os
import threading
import time

import pytest
import redis

from machines.engine import Engine, EngineUnavailable
from tests.installation.processes import eventually

from .audit import audit
from .builders import begin, line
from .processes import LONG, Workers, kill, wait_for

pytestmark = pytest.mark.redis

INSTANCES = 5000
PAUSE = 0.001  # seconds between two steps of a load: it lasts for as long as these tests need it
EVERYSEC_LOSES = 2.0  # seconds of answered steps at most: a write waits that long for a disk that is slow to sync


class Load(threading.Thread):
    """Takes and completes one job after the other; ``answered`` is what the server said it did, and when."""

    def __init__(self, engine):
        super().__init__(daemon=True)
        self._engine = Engine.from_url(f"unix://{engine.client.connection_pool.connection_kwargs['path']}")
        self._over = threading.Event()
        self.answered = []

    def run(self):
        try:
            while not self._over.is_set():
                for job in self._engine.take("line", "jobs", "load", count=10):
                    self._engine.complete(job)
                    self.answered.append((job.instance, time.monotonic()))
                    self._over.wait(PAUSE)
        except EngineUnavailable:
            pass
        finally:
            self._engine.client.close()

    def wait(self, count):
        eventually(lambda: len(self.answered) >= count, f"{count} jobs are done", LONG)

    def end(self):
        self._over.set()
        self.join(LONG)
        return self.answered


@pytest.fixture
def load(lasting_engine):
    """Work for a while, for one client that notes what was answered."""
    lasting_engine.publish(line("quick", lease=500))
    begin(lasting_engine, (f"i{number}" for number in range(INSTANCES)))
    load = Load(lasting_engine)
    yield load
    load.end()


def came_back(server, engine):
    server.revive()
    eventually(lambda: _answers(engine), "the server answers", LONG)


def _answers(engine):
    try:
        return engine.client.ping()
    except (redis.RedisError, OSError):
        return False


def test_with_appendfsync_always_every_step_that_was_answered_is_kept(lasting_server, lasting_engine, load):
    lasting_engine.client.config_set("appendfsync", "always")
    load.start()
    load.wait(200)
    kill(lasting_server, lasting_engine)
    answered = {id for id, _ in load.end()}
    came_back(lasting_server, lasting_engine)
    found = audit(lasting_engine, "line")
    assert answered <= found.of("done")
    assert len(found.of("done") - answered) <= 1, "at most the step whose answer was on its way"


def test_with_appendfsync_everysec_a_killed_server_loses_no_more_than_the_last_two_seconds(
    lasting_server, lasting_engine, load
):
    load.start()
    load.wait(500)
    gone = time.monotonic()  # or later
    kill(lasting_server, lasting_engine)
    answered = load.end()
    came_back(lasting_server, lasting_engine)
    kept = audit(lasting_engine, "line").of("done")
    _only_the_last(answered, kept, gone - EVERYSEC_LOSES)


def test_a_file_that_ends_anywhere_is_the_state_of_one_moment(lasting_server, lasting_engine, load):
    """As a power cut leaves it: what was not synced is missing, and the last write is torn."""
    load.start()
    eventually(lambda: load.answered, "it has begun", LONG)
    time.sleep(EVERYSEC_LOSES + 0.3)  # some steps have to be older than what may be lost
    (file,) = (lasting_server.folder / "appendonlydir").glob("*.incr.aof")
    moment, size = time.monotonic(), file.stat().st_size
    load.wait(len(load.answered) + 50)
    kill(lasting_server, lasting_engine)
    answered = load.end()
    os.truncate(file, size - 7)
    came_back(lasting_server, lasting_engine)
    kept = audit(lasting_engine, "line").of("done")
    assert len(kept) < len(answered), "nothing was cut off"
    _only_the_last(answered, kept, moment - EVERYSEC_LOSES)
    with Workers(lasting_server.url, lasting_server.folder) as workers:
        workers.start(concurrency=8)
        eventually(lambda: lasting_engine.counts("line")["done"] > len(answered), "the work goes on", LONG)


def _only_the_last(answered, kept, since):
    """What is missing is the end of what was answered, and none of it is older than ``since``."""
    ids = [id for id, _ in answered]
    there = len(list(itertools.takewhile(kept.__contains__, ids)))
    assert not kept & set(ids[there:]), "a later step is there and an earlier one is not"
    assert [at for _, at in answered[there:] if at < since] == []


def test_without_a_file_the_server_comes_back_empty(own_server, own_engine):
    """What `appendonly no` means: nothing of the machine is left, and nothing pretends to be."""
    own_engine.publish(line("quick"))
    begin(own_engine, ["a"])
    kill(own_server, own_engine)
    came_back(own_server, own_engine)
    assert own_engine.client.dbsize() == 0


def test_workers_go_on_by_themselves_and_do_every_job_once(lasting_server, lasting_engine, tmp_path):
    jobs, kills = 300, 2
    lasting_engine.publish(line("quick", "sleepy", lease=500))
    with Workers(lasting_server.url, tmp_path) as workers:
        running = [workers.start(concurrency=8) for _ in range(2)]
        begin(lasting_engine, (f"i{number}" for number in range(jobs)))
        for round in range(1, kills + 1):
            wait_for(lasting_engine, round * jobs // (kills + 1))
            kill(lasting_server, lasting_engine)
            came_back(lasting_server, lasting_engine)
        wait_for(lasting_engine, jobs)
        assert all("completed" in worker.finish() for worker in running)
    found = audit(lasting_engine, "line")
    assert (found.states, found.places) == ({"done": jobs}, {})
    assert {row["moved"] for row in found.instances.values()} == {"2"}


def test_an_idle_worker_takes_work_again_after_the_server_was_killed(lasting_server, lasting_engine, tmp_path):
    """The real command with all its defaults."""
    lasting_engine.publish(line("quick"))
    with Workers(lasting_server.url, tmp_path) as workers:
        worker = workers.command()
        begin(lasting_engine, ["before"])
        wait_for(lasting_engine, 1)
        kill(lasting_server, lasting_engine)
        came_back(lasting_server, lasting_engine)
        begin(lasting_engine, ["after"])
        wait_for(lasting_engine, 2)
        assert "2 completed" in worker.finish()
    audit(lasting_engine, "line")
