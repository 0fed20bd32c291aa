"""An installation of the product on a database of its own, and the real site of one, with people logged in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

from machines.conf.server import GuardedProcess

from .process import list_family
from .stage import HERE, PREFIX

ROOT = HERE.parent
USER = "bench"
PEOPLE = 8  # one person may send 600 commands at once, and watch 256 topics
START = 30.0  # seconds the site gets to start
MANAGE = (sys.executable, "manage.py")


class Installation:
    """Runs and starts commands of ``manage.py``. ``environment``: further settings."""

    def __init__(self, redis_url: str, **environment: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="signalbox-bench-site-")
        self._log = Path(self._folder.name) / "log"
        self._environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "dashboard.settings",
            "REDIS_URL": redis_url,
            "SIGNALBOX_PREFIX": PREFIX,
            "SIGNALBOX_HOME": self._folder.name,
            "DATABASE_URL": "",
            "CACHE_URL": "",
            "PYTHONUNBUFFERED": "1",
            **environment,
        }
        self.process: GuardedProcess

    def __enter__(self) -> Self:
        self.run("migrate")
        return self

    def run(self, *words: str) -> str:
        """Run a command to its end; return what it says."""
        command = [*MANAGE, *words, "--verbosity", "0"]
        ran = subprocess.run(command, cwd=ROOT, env=self._environment, stdout=subprocess.PIPE, text=True, check=True)
        return ran.stdout

    def start(self, *words: str) -> None:
        """Start the one command that goes on until the end."""
        with self._log.open("wb") as log:
            self.process = GuardedProcess([*MANAGE, *words], output=log, cwd=ROOT, env=self._environment)

    @property
    def pid(self) -> int:
        """Of the process that was started: the child of its guardian."""
        return list_family(self.process.pid)[1]

    def __exit__(self, *_: object) -> None:
        if hasattr(self, "process"):
            self.process.stop()
        self._folder.cleanup()


class Site(Installation):
    """``address`` is where it answers; ``cookies`` are sessions of users who may see everything."""

    def __enter__(self) -> Self:
        super().__enter__()
        self.cookies = self.run("shell", "-c", "from benchmarks.site import log_in; log_in()").split()
        self.start("serve", "--port", "0")
        deadline = time.monotonic() + START
        while (found := re.search(r"http://\S+", self._log.read_text())) is None:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the site did not start: {self._log.read_text()}")
            time.sleep(0.05)
        self.address = found.group()
        return self


def log_in() -> None:
    """Print the cookie of a session of each of the people."""
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.test import Client

    for number in range(PEOPLE):
        user = get_user_model().objects.create_superuser(f"{USER}{number or ''}", password=None)
        client = Client()
        client.force_login(user)
        print(f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}")
