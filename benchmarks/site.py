"""The real site under uvicorn, on a database of its own, with somebody logged in."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

from machines.server import Guarded

from .stage import HERE, PREFIX

ROOT = HERE.parent
USER = "bench"
START = 30.0  # seconds the site gets to start


class Site:
    """``address`` is where it answers; ``cookie`` is the session of a user who may see everything. ``environment``:
    further settings."""

    def __init__(self, redis_url: str, **environment: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="signalbox-bench-site-")
        self._environment = {
            "DJANGO_SETTINGS_MODULE": "dashboard.settings",
            "REDIS_URL": redis_url,
            "SIGNALBOX_PREFIX": PREFIX,
            "SIGNALBOX_HOME": self._folder.name,
            "DATABASE_URL": "",
            "CACHE_URL": "",
            **environment,
        }
        self._log = Path(self._folder.name) / "site.log"
        self.address = ""
        self.cookie = ""
        self._process: Guarded | None = None

    def __enter__(self) -> Self:
        os.environ.update(self._environment)
        self.cookie = _logged_in()
        command = [sys.executable, str(ROOT / "manage.py"), "serve", "--port", "0"]
        with self._log.open("wb") as log:
            self._process = Guarded(command, output=log, cwd=ROOT, env=os.environ | {"PYTHONUNBUFFERED": "1"})
        self.address = self._wait(self._process)
        return self

    @property
    def pid(self) -> int:
        """Of the process that serves: the child of its guardian."""
        assert self._process is not None
        guardian = self._process.pid
        return int(Path(f"/proc/{guardian}/task/{guardian}/children").read_text().split()[0])

    def _wait(self, process: Guarded) -> str:
        deadline = time.monotonic() + START
        while (found := re.search(r"http://\S+", self._log.read_text())) is None:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the site did not start: {self._log.read_text()}")
            time.sleep(0.05)
        return found.group()

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.stop()
        self._folder.cleanup()


def _logged_in() -> str:
    """Prepares the database and a session; answers the cookie."""
    import django

    django.setup()
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.test import Client

    call_command("migrate", verbosity=0)
    user = get_user_model().objects.create_superuser(USER, password=None)
    client = Client()
    client.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    return f"{name}={client.cookies[name].value}"
