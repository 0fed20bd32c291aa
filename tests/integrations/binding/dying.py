"""A process of the shop that is killed at a point of its work: ``python -m tests.integrations.binding.dying POINT``.

``set up`` makes tables and machines; ``after the step`` fires and dies before the column is written; ``after the
commit`` dies before anything is sent; ``after sending`` before the entry is settled; ``before the commit`` inside the
transaction.
Prints the key of the row it made.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.integrations.binding.settings"


def die(*_: object, **__: object) -> NoReturn:
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a killed process goes on")


def main(point: str) -> None:
    django.setup()
    from django.core.management import call_command
    from django.db import transaction

    from machines.connections import get_engine
    from machines.integrations.binding import delivery, state_columns

    from . import machines
    from .shop.models import Order

    if point == "set up":
        call_command("migrate", run_syncdb=True, verbosity=0, skip_checks=True)
        machines.publish(get_engine())
        return
    if point == "after the step":
        order = Order.objects.create()
        sys.stdout.write(f"{order.pk}\n")
        state_columns.advance = die
        order.status.fire("cancel")
    if point == "after the commit":
        delivery.send_soon = die
    if point == "after sending":
        delivery._end = die
    with transaction.atomic():
        order = Order.objects.create()
        sys.stdout.write(f"{order.pk}\n")
        order.status.fire("pay", {"amount": 0})
        order.status.fire("ship")
        if point == "before the commit":
            die()
    raise AssertionError(f"nothing ended the process at {point}")


if __name__ == "__main__":
    main(sys.argv[1])
