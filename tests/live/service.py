"""The site as a process, for tests that need the real server, and how it is started (see ``tests.live.site``)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from websockets.asyncio.client import connect

ROOT = Path(__file__).resolve().parents[2]


class Service:
    """``url`` of the websocket, ``origin`` of the pages, and the ``cookie`` of a user who may view."""

    def __init__(self, redis_url: str, prefix: str, home: Path, **limits: float) -> None:
        self._environment = os.environ | {
            "REDIS_URL": redis_url,
            "SIGNALBOX_PREFIX": prefix,
            "SIGNALBOX_HOME": str(home),
            "ALLOWED_HOSTS": "127.0.0.1,testserver",
            "LOG_LEVEL": "ERROR",
            "LIMITS_OF_THIS_TEST": json.dumps(limits),
        }
        self.prefix, self.port, self.cookie = prefix, 0, ""
        self.start()

    def start(self) -> None:
        """Again on the same port, when it was stopped before."""
        command = [sys.executable, "-m", "tests.live.site", str(self.port)]
        self.process = subprocess.Popen(command, cwd=ROOT, env=self._environment, stdout=subprocess.PIPE, text=True)
        said = json.loads(self.process.stdout.readline())
        self.port, self.cookie = said["port"], said["cookie"]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=90)
        self.process.stdout.close()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self, cookie: str = "", **options: object) -> connect:
        headers = {"Cookie": f"sessionid={cookie or self.cookie}"}
        url = f"ws://127.0.0.1:{self.port}/ws/live/"
        return connect(url, origin=self.origin, additional_headers=headers, open_timeout=60, **options)
