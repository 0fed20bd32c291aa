"""The whole product on a Redis Cluster: site and worker as processes, with settings from the environment alone."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from websockets import Origin
from websockets.sync.client import ClientConnection, connect

from machines.conf.server import GuardedProcess
from machines.engine import Engine
from tests.clusters import Cluster
from tests.installation.processes import PATIENCE, ROOT, eventually

from .visitor import Visitor

PREFIX = "sb:"
PASSWORD = "a-long-password"
PREPARE = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
import django
django.setup()
from django.core.management import call_command
call_command("check")
call_command("migrate", verbosity=0)
call_command("createsuperuser", interactive=False, username="boss", email="boss@example.com")
for definition in sys.argv[1:]:
    call_command("machine", "publish", definition)
"""  # one process, since each takes a second to start
PAGES = (
    "/",
    "/machines/payment/",
    "/machines/payment/rows/",
    "/queues/",
    "/workers/",
    "/search/?q=pay",
    "/audit/",
)
SAMPLES = ("activation", "new_device", "delivery", "payment", "service_activation")


class Site:
    """``visitor`` is logged in as a superuser; ``engine`` sees what the site sees, and waits for nodes that are
    away."""

    def __init__(self, cluster: Cluster, home: Path) -> None:
        self.cluster = cluster
        self.home = home
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in ("CACHE_URL", "DATABASE_URL")},
            "REDIS_URL": cluster.url,
            "SIGNALBOX_PREFIX": PREFIX,
            "SIGNALBOX_HOME": str(home),
            "SECRET_KEY": "of this test",
            "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
            "LOG_LEVEL": "WARNING",
        }
        self.processes: list[GuardedProcess] = []
        self.checked = self.origin = ""

    def start(self) -> None:
        self.checked = self._run_python("-c", PREPARE, *(str(ROOT / "examples" / f"{name}.json") for name in SAMPLES))
        self.engine = Engine.from_url(self.cluster.url, prefix=PREFIX, retry_for=PATIENCE)
        self._run("serve", "--port", "0")
        self._run("worker", "--grace", "5", "--concurrency", "4")
        self.origin = self._find_origin()
        self.visitor = Visitor(self.origin)
        self.visitor.log_in("boss", PASSWORD)

    def stop(self) -> None:
        for process in self.processes:
            process.ask()
        for process in self.processes:
            process.stop()
        if self.origin:
            self.visitor.close()
            self.engine.client.close()

    def manage(self, *words: str) -> str:
        """Run a command and return what it said."""
        return self._run_python("manage.py", *words)

    def run_code(self, code: str) -> str:
        """Run a Python program with the settings of this site, and return what it said."""
        return self._run_python("-c", code)

    def list_shards(self) -> list[str]:
        """List the slots of each primary, as ``/healthz`` writes them."""
        with self.cluster.nodes[0].client() as client:
            ranges = client.execute_command("CLUSTER SLOTS")
        return [f"{first}-{last}" for first, last, *_ in sorted(ranges)]

    def _run_python(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words], cwd=ROOT, env=self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return done.stdout

    def log(self, name: str) -> str:
        return (self.home / f"{name}.log").read_text(encoding="utf-8")

    @contextlib.contextmanager
    def live(self) -> Iterator[Live]:
        """An open page's socket."""
        address = f"{self.origin.replace('http', 'ws', 1)}/ws/live/"
        headers = {"Cookie": self.visitor.cookie}
        with connect(address, origin=Origin(self.origin), additional_headers=headers) as socket:
            yield Live(socket)

    def _run(self, *words: str) -> None:
        with (self.home / f"{words[0]}.log").open("wb") as log:
            command = [sys.executable, "manage.py", *words]
            self.processes.append(GuardedProcess(command, output=log, env=self.environment, cwd=ROOT, grace=20))

    def _find_origin(self) -> str:
        eventually(lambda: "Signalbox is at" in self.log("serve"), f"the site starts: {self.log('serve')}")
        origin = self.log("serve").partition("Signalbox is at ")[2].split()[0].rstrip("/")
        visitor = Visitor(origin)
        eventually(lambda: visitor.get("/readyz").status_code == 200, "the site is ready")
        visitor.close()
        return origin


class Live:
    """The values of the topics that a socket watches, with all deltas applied."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.values: dict[str, Any] = {}
        self.epochs: dict[str, str] = {}

    def watch(self, *topics: str) -> None:
        for topic in topics:
            self._socket.send(json.dumps({"type": "subscribe", "topic": topic}))

    def sees(self, topic: str, holds: Callable[[dict[str, Any]], Any], what: str) -> dict[str, Any]:
        """Read frames until the value of a topic is as wanted."""
        deadline = time.monotonic() + PATIENCE
        while topic not in self.values or not holds(self.values[topic]):
            left = deadline - time.monotonic()
            assert left > 0, f"never shown: {what}; {topic} is {self.values.get(topic)}"
            try:
                self._take(json.loads(self._socket.recv(timeout=left)))
            except TimeoutError:
                continue
        found: dict[str, Any] = self.values[topic]
        return found

    def _take(self, frame: dict[str, Any]) -> None:
        if frame["type"] == "snapshot":
            self.values[frame["topic"]] = frame["data"]
        elif frame["type"] == "delta":
            self.values[frame["topic"]] = merge(self.values[frame["topic"]], frame["data"])


def merge(value: Any, patch: Any) -> Any:
    """Apply a JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(value) if isinstance(value, dict) else {}
    for name, part in patch.items():
        if part is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), part)
    return merged
