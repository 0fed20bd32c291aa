"""Makes the shop's tables, accounts, machines and an instance, in a process with the shop's settings."""

from __future__ import annotations

import json
from pathlib import Path

import django
from django.core.management import call_command

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PASSWORD = "let me in"


def main() -> None:
    django.setup()
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Group

    from machines.catalog.publishing import publish
    from machines.connections import get_engine
    from machines.schedules import Schedules

    call_command("migrate", verbosity=0)
    users = get_user_model().objects
    users.create_superuser("boss", "boss@shop.example", PASSWORD)
    users.create_user("operator", password=PASSWORD).groups.add(Group.objects.get(name="operator"))
    users.create_user("customer", password=PASSWORD)
    for name in ("activation", "new_device"):
        publish(json.loads((EXAMPLES / f"{name}.json").read_text()))
    get_engine().create("activation", "ATV-123:NBCSports")
    get_engine().create("new_device", "ATV-123:NBCSports")
    what = {"do": "enqueue", "machine": "new_device", "src": "start"}
    Schedules(get_engine()).put({"name": "nightly", "when": {"cron": "30 2 * * *"}, "what": what})
    newer = json.loads((EXAMPLES / "new_device.json").read_text())
    publish(newer | {"description": "With a second version, there is something to plan."})


main()
