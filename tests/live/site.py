"""The real site in a process of its own: ``python -m tests.live.site PORT``, settings from the environment.

Makes its database and a signed-in user, prints ``{"port": ..., "cookie": ...}`` on one line, and serves until SIGTERM.
"""

from __future__ import annotations

import json
import os
import socket
import sys

from tests.configuration import configure


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    import django
    from django.conf import settings

    django.setup()
    configure(settings, LIVE=json.loads(os.environ.get("LIMITS_OF_THIS_TEST", "{}")))
    from django.contrib.auth.models import User
    from django.core.management import call_command

    from dashboard.serving import server

    from .sockets import make_user, sign_in

    call_command("migrate", verbosity=0)
    user = User.objects.filter(username="viewer").first() or make_user("viewer", "view")
    cookie = sign_in(user)
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    sys.stdout.write(json.dumps({"port": listener.getsockname()[1], "cookie": cookie}) + "\n")
    sys.stdout.flush()
    server.run(listener)


if __name__ == "__main__":
    main()
