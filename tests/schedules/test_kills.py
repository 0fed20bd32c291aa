"""Two real workers, of which one is killed again and again: each occurrence is carried out once."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from machines.engine import Engine
from machines.engine.keys import PREFIX
from machines.schedules import Schedules
from tests.faults.processes import LONG, Worker
from tests.installation.processes import ROOT, eventually

from .conftest import REPORT

pytestmark = pytest.mark.faults

KILLS = 4
CREATED = {"name": "created", "what": {"do": "create", "machine": "report"}}
QUEUED = {"name": "queued", "what": {"do": "enqueue", "machine": "report", "src": "make_report"}}


@pytest.fixture
def engine(own_server):
    engine = Engine.from_url(own_server.url)
    engine.publish(REPORT)
    yield engine
    engine.client.close()


@pytest.fixture
def begin_worker(own_server, tmp_path, engine):
    """Begins a worker of a project whose tables are there. It leaves the queue ``make_report`` alone."""
    environment = {
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
        "DATABASE_URL": f"sqlite:///{tmp_path}/site.sqlite3",
        "SIGNALBOX_HOME": str(tmp_path),
        "REDIS_URL": own_server.url,
        "SIGNALBOX_PREFIX": PREFIX,
    }
    migrate = [sys.executable, "manage.py", "migrate", "-v0"]
    subprocess.run(migrate, cwd=ROOT, env=environment, check=True, timeout=LONG)
    begun: list[Worker] = []

    def begin() -> Worker:
        command = ["manage.py", "worker", "--queues", "schedules/work"]
        begun.append(Worker(command, tmp_path / f"worker-{len(begun)}.log", **environment))
        return begun[-1]

    yield begin
    for worker in begun:
        worker.close()


def test_workers_are_killed_and_each_occurrence_is_carried_out_once(engine, begin_worker):
    schedules = Schedules(engine)
    for one in (CREATED, QUEUED):
        schedules.put({"when": {"every": "1s"}, "catch_up": "all"} | one)
    workers = [begin_worker(), begin_worker()]
    for number in range(KILLS):
        wanted = schedules.get("created").count + 2
        eventually(lambda wanted=wanted: schedules.get("created").count >= wanted, "runs go on", LONG)
        workers[number % 2].kill()
        workers[number % 2] = begin_worker()
    for one in (CREATED, QUEUED):
        schedules.pause(one["name"])
        eventually(lambda one=one: not schedules.get(one["name"]).pending, "what was claimed is carried out", LONG)
        runs = schedules.history(one["name"], 1000)
        planned = sorted(run["p"] for run in runs)
        assert planned == list(range(planned[0], planned[0] + len(planned))), "each once, and none left out"
        assert Counter(run["o"] for run in runs) == {"done": len(runs)}
        assert schedules.get(one["name"]).count == len(runs) > KILLS
    assert engine.live("report").total == len(schedules.history("created", 1000))
    assert engine.queues("report")["make_report"]["ready"] == len(schedules.history("queued", 1000))
