"""Chunks are spread over real worker processes, and one that is killed costs nothing but time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from machines.catalog import builtin_machines
from machines.mapreduce import Progress
from machines.mapreduce.store import CHUNK
from tests.installation.processes import ROOT, eventually

from .app import handlers
from .builders import counts, made


@pytest.fixture
def start(engine, redis_url, prefix, tmp_path):
    """Starts worker processes on this test's keys."""
    started = []

    def start(*arguments):
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "tests.mapreduce.settings",
            "REDIS_URL": redis_url,
            "SIGNALBOX_PREFIX": prefix,
            "DATABASE_URL": f"sqlite:///{tmp_path}/worker.sqlite3",  # never that of whoever runs this
        }
        command = [sys.executable, "manage.py", "worker", *arguments]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_lost_workers_chunk_is_run_again_by_another(engine, start, prefix):
    begun = lambda: dict(word.split(":") for word in engine.client.lrange(f"{prefix}begun", 0, -1))  # noqa: E731
    quick = builtin_machines.definition(CHUNK)
    quick["states"]["working"]["invoke"] |= {"lease": "1500ms", "retry": {"attempts": 3, "backoff": "10ms"}}
    engine.publish(quick)
    run = made(engine, range(100), map_function=handlers.gated, chunks=4)
    run.map()
    workers = {str(process.pid): process for process in (start("--concurrency", "1"), start("--concurrency", "1"))}
    eventually(lambda: set(begun()) == set(workers), "both have a chunk")
    pid, first = next(iter(begun().items()))
    os.kill(int(pid), signal.SIGKILL)
    workers[pid].wait()
    assert counts(engine, CHUNK) == {"waiting": 2, "mapping": 2}
    engine.client.rpush(f"{prefix}go", *range(4))
    assert run.reduce(timeout=60) == sum(range(100))
    assert run.progress() == Progress(4, 4, "done")
    again = [word for word in engine.client.lrange(f"{prefix}begun", 0, -1) if word.endswith(f":{first}")]
    assert len(again) == 2
    assert len({word.split(":")[0] for word in again}) == 2
