"""The site on a listener it inherits, with its accounts made first: ``serve.py DESCRIPTOR``.

Unlike the site of tests/browser it has a database of its own, since sign-in brings tables that the tests' has not.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"

import django
from django.conf import settings

NAMES = ("ann", "bob", "cat", "dan", "eve", "fay", "gus", "hal", "ian", "jon", "kim", "lea")


def prepare() -> None:
    """Make the tables and the accounts; all are supervisors, and the first one is a superuser, too."""
    from django.contrib.auth.models import Group, User
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    for name in NAMES:
        made = User.objects.create_user(name, f"{name}@example.com", "let me in")
        made.groups.add(Group.objects.get(name="supervisor"))
    User.objects.filter(username=NAMES[0]).update(is_staff=True, is_superuser=True)


def serve(descriptor: int) -> None:
    from dashboard.serving import server

    server.run(socket.socket(fileno=descriptor))


settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
django.setup()
prepare()
serve(int(sys.argv[1]))
