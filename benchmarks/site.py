"""The real site under uvicorn, on a database of its own, with somebody logged in."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from machines.server import Guarded

from .stage import HERE, PREFIX

ROOT = HERE.parent
USER = "bench"
PEOPLE = 8  # one person may send 600 commands at once, and watch 256 topics
START = 30.0  # seconds the site gets to start


class Site:
    """``address`` is where it answers; ``cookies`` are sessions of users who may see everything, ``cookie`` the first.

    ``root``: the checkout that is served; ``cookies`` may be given, with the SIGNALBOX_HOME that they belong to;
    ``environment``: further settings.
    """

    def __init__(self, redis_url: str, root: Path = ROOT, cookies: Sequence[str] = (), **environment: str) -> None:
        self._root = root
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
        self.cookies = list(cookies)
        self._process: Guarded | None = None

    def __enter__(self) -> Self:
        os.environ.update(self._environment)
        self.cookies = self.cookies or _log_in()
        command = [sys.executable, str(self._root / "manage.py"), "serve", "--port", "0"]
        with self._log.open("wb") as log:
            self._process = Guarded(command, output=log, cwd=self._root, env=os.environ | {"PYTHONUNBUFFERED": "1"})
        self.address = self._wait(self._process)
        return self

    @property
    def cookie(self) -> str:
        return self.cookies[0]

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


def _log_in() -> list[str]:
    """Prepare the database and a session of each of the people; answer their cookies."""
    import django

    django.setup()
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.test import Client

    call_command("migrate", verbosity=0)
    cookies = []
    for number in range(PEOPLE):
        user = get_user_model().objects.create_superuser(f"{USER}{number or ''}", password=None)
        client = Client()
        client.force_login(user)
        cookies.append(f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}")
    return cookies
