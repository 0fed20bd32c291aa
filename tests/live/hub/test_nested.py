"""What the socket tells of machines whose instances stand in several states at once, wait for timers, and are held."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from machines.engine import Engine
from tests.live.sockets import Socket, visitor

pytestmark = pytest.mark.django_db(transaction=True)

KILN = {
    "id": "kiln",
    "initial": "Cold",
    "states": {
        "Cold": {"on": {"light": "Burning"}},
        "Burning": {
            "type": "parallel",
            "on": {"quench": "Cold"},
            "states": {
                "Fire": {"initial": "Low", "states": {"Low": {"after": {"1h": "High"}}, "High": {}}},
                "Door": {"initial": "Shut", "states": {"Shut": {"on": {"open": "Ajar"}}, "Ajar": {}}},
            },
        },
    },
}


@pytest.fixture
async def kiln(engine: Engine) -> Engine:
    engine.publish(KILN)
    engine.create("kiln", "one")
    engine.create("kiln", "two")
    return engine


@pytest.fixture
async def socket(kiln: Engine) -> AsyncIterator[Socket]:
    _, cookie = await visitor("viewer", "view")
    socket = Socket(cookie)
    await socket.connect()
    yield socket
    await socket.disconnect()


async def test_counts_are_of_leaves_and_the_total_is_of_instances(kiln: Engine, socket: Socket) -> None:
    await socket.subscribe("machine:kiln", "overview")
    await socket.until(lambda screen: "kiln" in screen.values.get("overview", {}).get("machines", {}))
    await socket.sees("machine:kiln", total=2, timers=0)
    kiln.fire("kiln", "one", "light")
    await socket.sees("machine:kiln", total=2, timers=1, overdue=0)
    counts = socket.screen.values["machine:kiln"]["counts"]
    assert {name: count for name, count in counts.items() if count} == {"Cold": 1, "Low": 1, "Shut": 1}
    await socket.until(lambda screen: screen.values["overview"]["machines"]["kiln"]["counts"]["Low"] == 1)
    assert socket.screen.values["overview"]["machines"]["kiln"]["total"] == 2


async def test_an_instance_is_told_with_all_its_leaves_its_timers_and_its_suspension(
    kiln: Engine, socket: Socket
) -> None:
    await socket.subscribe("instance:kiln/one")
    await socket.sees("instance:kiln/one", configuration=["Cold"], timers=[], suspended=None)
    lit = kiln.fire("kiln", "one", "light")
    await socket.sees("instance:kiln/one", configuration=["Low", "Shut"], state="Low, Shut")
    (timer,) = socket.screen.values["instance:kiln/one"]["timers"]
    assert (timer["state"], timer["due"]) == ("Low", lit.timers[0].due)
    held = kiln.suspend("kiln", "one", actor="sue", reason="a test")
    await socket.sees("instance:kiln/one", suspended=held.suspended, revision=held.revision)
    kiln.resume("kiln", "one", actor="sue", reason="a test")
    await socket.sees("instance:kiln/one", suspended=None, revision=held.revision + 1)
