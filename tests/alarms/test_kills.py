"""Workers are killed while a receiver holds their message: each episode is sent once, and so is its end."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from machines.conf.server import Server
from machines.engine import Engine
from machines.engine.keys import PREFIX
from tests.faults.processes import LONG, Worker
from tests.installation.processes import ROOT, eventually
from tests.webhooks.conftest import Receiver

from .conftest import DESK

pytestmark = pytest.mark.faults

SET_UP = """
import django
django.setup()
from django.core.management import call_command
from machines.alarms import routes
from machines.people.actor import Actor
call_command("migrate", verbosity=0)
routes.make(Actor("ann", "test"), name="ops", url={url!r}, kinds=["sla"])
"""
DUE = "UPDATE machines_delivery SET due = '2026-01-01 00:00:00' WHERE state = 'sending'"
QUIET = "UPDATE machines_alarmroute SET sent_at = '2026-01-01 00:00:00'"
GONE = "UPDATE machines_alarmstate SET last_seen = '2026-01-01 00:00:00'"


class Room:
    """The database and the server of one installation, its receiver, and its workers."""

    def __init__(self, url: str, folder: Path) -> None:
        self.engine, self.receiver, self.folder = Engine.from_url(url), Receiver(), folder
        self._file = folder / "room.sqlite3"
        self._environment = {
            "DATABASE_URL": f"sqlite:///{self._file}",
            "DJANGO_SETTINGS_MODULE": "dashboard.settings",
            "REDIS_URL": url,
            "SIGNALBOX_PREFIX": PREFIX,
            "SIGNALBOX_HOME": str(folder),
            "SIGNALBOX_WEBHOOK_HOSTS": "127.0.0.1",
            "SIGNALBOX_WEBHOOK_PORTS": str(self.receiver.server.server_address[1]),
        }
        code = SET_UP.format(url=self.receiver.url)
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=os.environ | self._environment, check=True)
        self.workers: list[Worker] = []

    def start_worker(self) -> Worker:
        log = self.folder / f"worker-{len(self.workers)}.log"
        self.workers.append(Worker(["manage.py", "worker"], log, **self._environment))
        return self.workers[-1]

    def change(self, sql: str) -> None:
        with sqlite3.connect(self._file, timeout=LONG) as connection:
            connection.execute(sql)

    def list_states(self) -> list[str]:
        with sqlite3.connect(self._file, timeout=LONG) as connection:
            return [state for (state,) in connection.execute("SELECT state FROM machines_delivery ORDER BY id")]

    def kill_while_it_sends(self, worker: Worker, states: list[str]) -> Worker:
        """Kill a worker whose message the receiver has and does not answer; let another one go on."""
        begun = 2 * len(states) - 1  # each message before was begun twice; this one may be there already
        eventually(lambda: len(self.receiver.requests) >= begun, "a message arrives", LONG)
        worker.kill()
        self.receiver.hang.set()
        self.change(DUE)  # the lease of a dead sender is a minute; nobody waits for that here
        another = self.start_worker()
        eventually(lambda: self.list_states() == states, f"deliveries are {self.list_states()}", LONG)
        return another

    def close(self) -> None:
        for worker in self.workers:
            worker.close()
        self.receiver.close()
        self.engine.client.close()


@pytest.fixture
def room(own_server: Server, tmp_path: Path) -> Iterator[Room]:
    room = Room(own_server.url, tmp_path)
    yield room
    room.close()


def test_whichever_worker_is_killed_an_episode_is_sent_once_and_its_end_once(room):
    room.engine.publish(DESK)
    room.engine.create("desk", "old", now=int(time.time() * 1000) - 3_600_000)
    room.receiver.hang.clear()
    second = room.kill_while_it_sends(room.start_worker(), ["sent"])
    room.receiver.hang.clear()
    room.engine.fire("desk", "old", "take")
    room.change(QUIET)
    eventually(lambda: room.change(GONE) or len(room.list_states()) == 2, "the end is noticed", LONG)
    room.kill_while_it_sends(second, ["sent", "sent"])
    sent = {headers["webhook-id"]: json.loads(body)["data"] for _, headers, body in room.receiver.requests}
    assert len(room.receiver.requests) == 4, "each was begun twice, since its worker died"
    assert [(message["begun"], message["over"]) for message in sent.values()] == [(1, 0), (0, 1)]
