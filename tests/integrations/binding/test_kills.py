"""Processes are killed at each point between the database and Redis; a worker brings the two together."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from machines.conf.server import Server
from machines.engine import Engine
from machines.engine.keys import PREFIX
from tests.faults.processes import LONG, Worker
from tests.installation.processes import ROOT, eventually

pytestmark = pytest.mark.faults

SHIPPED = ("packing, printing", 3)


class Shop:
    """The database and the server of one project, and its processes."""

    def __init__(self, url: str, folder: Path) -> None:
        self.folder = folder
        self.engine = Engine.from_url(url)
        self._file = folder / "shop.sqlite3"
        self._environment = {
            "DATABASE_URL": f"sqlite:///{self._file}",
            "DJANGO_SETTINGS_MODULE": "tests.integrations.binding.settings",
            "REDIS_URL": url,
            "SIGNALBOX_PREFIX": PREFIX,
        }
        self.workers: list[Worker] = []

    def run(self, point: str) -> str:
        """Run a process up to a point; return what it printed."""
        done = subprocess.run(
            [sys.executable, "-m", "tests.integrations.binding.dying", point],
            cwd=ROOT, env=os.environ | self._environment, capture_output=True, text=True, timeout=LONG, check=False,
        )  # fmt: skip
        assert done.returncode == (0 if point == "set up" else -signal.SIGKILL), done.stderr
        return done.stdout.strip()

    def worker(self) -> Worker:
        log = self.folder / f"worker-{len(self.workers)}.log"
        self.workers.append(Worker(["manage.py", "worker"], log, **self._environment))
        return self.workers[-1]

    def query(self, sql: str, *values: object) -> list[tuple]:
        with sqlite3.connect(self._file, timeout=LONG) as connection:
            return connection.execute(sql, values).fetchall()

    def row(self, id: str) -> tuple[str, int] | None:
        found = self.query("SELECT status, status_revision FROM shop_order WHERE id = ?", id)
        return found[0] if found else None

    def follows(self, id: str, state: str, revision: int) -> None:
        eventually(lambda: self.row(id) == (state, revision), f"row {id} is {state}, not {self.row(id)}", LONG)


@pytest.fixture
def project(own_server: Server, tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(own_server.url, tmp_path)
    yield shop
    for worker in shop.workers:
        worker.close()
    shop.engine.client.close()


def test_whatever_is_killed_the_rows_follow_and_nothing_is_lost_or_doubled(project):
    project.run("set up")
    stepped = project.run("after the step")
    unsent = project.run("after the commit")
    unsettled = project.run("after sending")
    rolled_back = project.run("before the commit")
    assert (project.row(stepped), project.row(unsent), project.row(rolled_back)) == (("new", 1), ("", 0), None)
    assert project.engine.get("order", stepped).state == "cancelled"
    # The lease of the process that died while sending is a minute; nobody waits for that here.
    with sqlite3.connect(project.folder / "shop.sqlite3", timeout=LONG) as connection:
        connection.execute("UPDATE machines_outboxentry SET due = '2026-01-01 00:00:00' WHERE state = 'waiting'")
    worker = project.worker()
    project.follows(stepped, "cancelled", 2)
    for id in (unsent, unsettled):
        project.follows(id, *SHIPPED)
        assert [step.event for step in project.engine.history("order", id)] == ["ship", "pay", "(create)"]
    assert project.engine.live("order").total == 3
    worker.kill()
    project.engine.fire("order", unsent, "packed")  # while no worker runs
    project.worker()
    project.follows(unsent, "sent, printing", 4)
