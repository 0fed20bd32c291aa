"""Worker processes that a test starts, kills, stops and lets go on; and the server behind them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from machines.conf.server import Server
from machines.engine import Engine
from machines.engine.keys import PREFIX
from tests.installation.processes import ROOT, eventually

LONG = 60.0  # seconds a test waits for what has to happen soon
QUICK = {"block": 0.2, "beat": 0.1, "sweep": 0.1, "backoff": 0.2, "grace": 5.0}  # seconds: quick on its feet


class Worker:
    """One process, its output in ``log``."""

    def __init__(self, command: list[str], log: Path, **environment: str) -> None:
        self.log = log
        with log.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env=os.environ | {"DATABASE_URL": f"sqlite:///{log.parent}/worker.sqlite3"} | environment,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.pid = self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Does nothing to one that was killed meanwhile."""
        self.process.send_signal(signal.SIGCONT)

    def finish(self) -> str:
        """Ends it in order; what it said."""
        self.process.terminate()
        self.process.wait(LONG)
        said = self.log.read_text()
        assert self.process.returncode == 0, said
        return said

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()


class Workers:
    """All workers of a test, on one server; leaving the block ends those that are left."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self._folder = folder
        self.all: list[Worker] = []

    def start(self, *, shift: str = "", **options: object) -> Worker:
        """One with the handlers of these tests. ``shift``: what its wall clock does, see ``tests.faults.shifted``."""
        entry = ["tests.faults.shifted", shift] if shift else ["tests.faults.worker"]
        return self._run(["-m", *entry, self.url, json.dumps(QUICK | options)])

    def command(self) -> Worker:
        """``python manage.py worker`` as it is, with the handlers of ``tests.worker.app``."""
        environment = {
            "DJANGO_SETTINGS_MODULE": "tests.worker.settings",
            "REDIS_URL": self.url,
            "SIGNALBOX_PREFIX": PREFIX,
        }
        return self._run(["manage.py", "worker"], **environment)

    def _run(self, command: list[str], **environment: str) -> Worker:
        self.all.append(Worker(command, self._folder / f"worker-{len(self.all)}.log", **environment))
        return self.all[-1]

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.all:
            worker.close()


def kill(server: Server, engine: Engine) -> None:
    """SIGKILL for the server itself, with no chance to write anything."""
    os.kill(engine.client.info("server")["process_id"], signal.SIGKILL)
    eventually(lambda: not server.running, "the server is gone")


def wait_for(engine: Engine, count: int, state: str = "done", machine: str = "line", patience: float = LONG) -> None:
    eventually(lambda: engine.counts(machine)[state] >= count, f"{count} instances are {state}", patience)
