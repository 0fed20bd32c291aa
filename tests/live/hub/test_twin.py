from __future__ import annotations

import pytest
from channels.db import database_sync_to_async
from django.conf import settings as django_settings
from django.test import Client

from machines.engine import Engine, WorkerInfo
from tests.live.sockets import Socket, visitor

pytestmark = pytest.mark.django_db(transaction=True)
TOPICS = (
    "overview",
    "machine:gate",
    "machine:ghost",
    "instance:gate/north",
    "instance:gate/ghost",
    "queues",
    "queue:shift/crew",
    "job:shift/0-1",
    "job:shift/0-2",
    "job:shift/9-1",
    "workers",
)


def timeless(value: dict) -> dict:
    return value | {"now": 0}


async def test_the_socket_and_the_http_twin_say_the_same(gate: Engine) -> None:
    """After a run of changes that arrived as deltas."""
    now = gate.live("gate").now
    gate.beat(WorkerInfo("w1", "host", 7, ["crew"], in_hand=0, started=now, seen=now))
    _, cookie = await visitor("viewer", "view")
    socket = Socket(cookie)
    await socket.connect()
    await socket.subscribe(*TOPICS)
    for topic in TOPICS:
        await socket.sees(topic)
    for number in range(30):
        gate.create("gate", f"i{number}")
        gate.fire("gate", f"i{number}", "open" if number % 3 else "write", {} if number % 3 else {"text": "é"})
    gate.fire("shift", "north", "begin")
    gate.take("shift", "crew", "w1")
    gate.fire("gate", "north", "open")
    await socket.sees("machine:gate", counts=gate.counts("gate"))
    await socket.sees("queue:shift/crew", leased=1)
    await socket.sees("instance:gate/north", state="Open")
    await socket.until(lambda screen: screen.values["overview"]["machines"]["gate"]["total"] == 31)
    await socket.until(lambda screen: screen.values["queues"]["queues"]["shift/crew"]["leased"] == 1)

    def twin(topic: str) -> dict:
        client = Client()
        client.cookies[django_settings.SESSION_COOKIE_NAME] = cookie
        return client.get("/api/v1/live/", {"topic": topic}).json()["data"]

    for topic in TOPICS:
        over_http = await database_sync_to_async(twin)(topic)
        await socket.until(lambda screen, topic=topic, told=over_http: timeless(screen.values[topic]) == timeless(told))
    await socket.disconnect()
