"""What a worker loads at its start."""

from __future__ import annotations

import os
import subprocess
import sys

from machines.conf import conf

LOADED = """
import django, sys
django.setup()
from django.core.checks import run_checks
from machines.management.commands.worker import Command
told = [message.id for message in run_checks(tags=Command.requires_system_checks)]
print(*told, *(name for name in ("httpx", "ninja", "dashboard.urls", "dashboard.page_urls") if name in sys.modules))
"""


def test_the_checks_of_a_worker_look_at_its_server_and_load_no_pages(own_server):
    settings = {
        "REDIS_URL": own_server.url,
        "SIGNALBOX_PREFIX": conf.PREFIX,
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
    }
    ran = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, env=os.environ | settings
    )
    found = ran.stdout.split()
    assert "signalbox.W005" in found  # what it says of a server whose data is on no disk
    assert not {"httpx", "ninja", "dashboard.urls", "dashboard.page_urls"} & {*found}
