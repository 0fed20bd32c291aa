"""Sends a message by apprise (Slack, Teams, PagerDuty, mail and others), each in a process of its own.

A service that hangs is left at its deadline, and a worker that dies takes the attempt with it. The process judges
each address it connects to as that of a webhook is judged, except its port, and uses no proxy of the environment.
"""

import json
import os
import subprocess
import sys

from machines.conf import conf, extras

LONGEST = 30.0  # seconds of one attempt, start of the process included: half of the lease of a delivery
HELPER = "machines.webhooks.apprise_helper"


def is_apprise(url: str) -> bool:
    """Tell whether an address is one of apprise, as slack://..., and none that is posted to."""
    return "://" in url and get_scheme(url) not in ("http", "https")


def get_scheme(url: str) -> str:
    return url.partition("://")[0].lower()


def check(url: str) -> str:
    """Return what is wrong with an address of apprise; "" for nothing. Sends nothing."""
    return _run(url, {})


def send(url: str, title: str, text: str, kind: str) -> str:
    """Send one message; return why that failed, "" if it did not. ``kind``: failure, warning, info or success."""
    return _run(url, {"title": title, "body": text, "notify_type": kind})


def _run(url: str, message: dict[str, str]) -> str:
    if extras.list_missing("alarms"):
        return extras.explain(f"{get_scheme(url)}://", "alarms")
    order = {"url": url, "message": message, "hosts": list(conf.WEBHOOK_HOSTS), "parent": os.getpid()}
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", HELPER], input=json.dumps(order), env=environment, capture_output=True,
            text=True, timeout=LONGEST, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no response within {LONGEST:g} seconds"
    except OSError as error:
        return f"the process that sends it did not start: {error}"
    return done.stdout if done.returncode == 0 else f"the process that sends it ended with {done.returncode}"
