"""Django on the stage's server: for what comes in over HTTP and websockets."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PREFIX = "fuzz:"
HOST = "testserver"
USER = "fuzzer"


@dataclass(frozen=True, slots=True)
class Site:
    """``token``: of somebody who may do everything, for the API."""

    token: str

    def post(self, path: str, body: bytes) -> Any:
        """What the API answers."""
        from django.test import Client

        return Client().post(
            f"/api/v1{path}",
            data=body,
            content_type="application/json",
            headers={"Authorization": f"Bearer {self.token}"},
        )

    def cookie(self) -> str:
        """Of a fresh session of that person."""
        from django.contrib.auth import get_user_model

        from tests.live.sockets import sign_in

        return sign_in(get_user_model().objects.get(username=USER))


@contextlib.contextmanager
def configured(url: str) -> Iterator[None]:
    """Django with a database of this run's own; for a process that has not set it up yet."""
    with tempfile.TemporaryDirectory(prefix="signalbox-fuzz-site-") as home:
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "dashboard.settings", "REDIS_URL": url, "SIGNALBOX_PREFIX": PREFIX,
            "DATABASE_URL": "", "SIGNALBOX_HOME": str(Path(home)), "ALLOWED_HOSTS": HOST, "LOG_LEVEL": "CRITICAL",
        }  # fmt: skip
        import django
        from django.core.management import call_command

        django.setup()
        logging.disable(logging.CRITICAL)  # each refused request is a warning
        call_command("migrate", verbosity=0)
        yield


def furnished(machine: str) -> Site:
    """People, and what SQL knows of a machine that is published anew for each input."""
    from django.contrib.auth import get_user_model

    from machines.models import Machine
    from machines.people import tokens
    from machines.people.permissions import RIGHTS

    user = get_user_model().objects.create_superuser(USER, password=None)
    Machine.objects.create(name=machine, current=1)
    return Site(tokens.make(user, "a run", tuple(RIGHTS))[1])
