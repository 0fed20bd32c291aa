from __future__ import annotations

import asyncio

import pytest

from dashboard.live.hub.hub import hub
from dashboard.live.messages import CloseCode
from dashboard.live.sockets.consumer import LiveConsumer
from machines.engine import Engine
from tests.configuration import configure
from tests.live.sockets import PATIENCE, Socket, visitor

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _impatient(settings) -> None:
    configure(settings, LIVE={"send_deadline": 0.3, "close_grace": 0.3, "reconcile": 0.05})


@pytest.fixture(params=[False, True], ids=["sent", "written"])
def direct(request: pytest.FixtureRequest) -> bool:
    """Whether frames are written to the connection, or go through the ASGI server's ``send``."""
    return request.param


async def opened(*, room: int, direct: bool) -> Socket:
    _, cookie = await visitor(f"viewer{room}", "view")
    socket = Socket(cookie, room=room, direct=direct)
    await socket.connect()
    await socket.subscribe("machine:gate")
    return socket


async def test_a_client_that_takes_nothing_is_let_go_and_the_others_see_on(gate: Engine, direct: bool) -> None:
    good, bad = await opened(room=0, direct=direct), await opened(room=2, direct=direct)
    await good.sees("machine:gate")
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait([bad.future])
    gate.fire("gate", "north", "open")
    await good.sees("machine:gate", counts={"Shut": 0, "Open": 1})
    assert bool(good.direct) is direct
    await good.disconnect()
    assert hub()._task is None, "the last socket ended the hub, so the slow one was not forgotten there"


async def test_a_client_that_wakes_up_in_time_is_told_why(gate: Engine, settings, monkeypatch, direct: bool) -> None:
    configure(settings, LIVE={"send_deadline": 0.3, "close_grace": PATIENCE, "reconcile": 0.05})
    let_go, end = asyncio.Event(), LiveConsumer._end

    def ended(consumer: LiveConsumer, code: CloseCode | None) -> None:
        let_go.set()
        end(consumer, code)

    monkeypatch.setattr(LiveConsumer, "_end", ended)
    socket = await opened(room=2, direct=direct)
    async with asyncio.timeout(PATIENCE):
        await let_go.wait()
    assert await socket.end() == CloseCode.TOO_SLOW


async def test_a_slow_client_skips_values_and_ends_with_the_true_one(gate: Engine, settings, direct: bool) -> None:
    configure(settings, LIVE={})
    socket = await opened(room=2, direct=direct)
    await socket.sees("machine:gate")
    for _ in range(20):
        for event in ("open", "shut", "open", "shut"):
            gate.fire("gate", "north", event)
        await asyncio.sleep(0.06)
    await socket.sees("machine:gate", flow={"1:t1": 40, "1:t3": 40})
    assert len(socket.screen.kinds("machine:gate")) < 12
    await socket.disconnect()
