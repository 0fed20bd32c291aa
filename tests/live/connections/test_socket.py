from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth.models import User

from dashboard.live.messages import CloseCode, ErrorCode
from dashboard.site import stores
from machines.engine import Engine
from tests.configuration import configure
from tests.live.sockets import Socket, sign_in, visitor

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def socket(gate: Engine) -> AsyncIterator[Socket]:
    """Open, of a user who may view."""
    _, cookie = await visitor("viewer", "view")
    socket = Socket(cookie)
    await socket.connect()
    yield socket
    await socket.disconnect()


async def test_a_fire_shows_on_the_socket(gate: Engine, socket: Socket) -> None:
    await socket.subscribe("machine:gate", "instance:gate/north", "overview", "queues", "queue:shift/crew", "workers")
    for topic in ("machine:gate", "instance:gate/north", "overview", "queues", "queue:shift/crew", "workers"):
        await socket.sees(topic)
    gate.fire("gate", "north", "open")
    await socket.sees("machine:gate", counts={"Shut": 0, "Open": 1})
    await socket.sees("instance:gate/north", state="Open")
    await socket.until(lambda screen: screen.values["overview"]["machines"]["gate"]["counts"]["Open"] == 1)
    assert "live" in socket.screen.states


async def test_nothing_comes_after_unsubscribing(gate: Engine, socket: Socket) -> None:
    await socket.subscribe("machine:gate", "instance:gate/north")
    await socket.sees("machine:gate")
    await socket.sees("instance:gate/north")
    await socket.say("unsubscribe", "machine:gate")
    gate.fire("gate", "north", "open")
    await socket.sees("instance:gate/north", state="Open")
    assert socket.screen.kinds("machine:gate") == ["snapshot"]


async def test_resync_sends_the_snapshot_again_under_the_same_number(socket: Socket) -> None:
    await socket.subscribe("machine:gate")
    await socket.sees("machine:gate")
    mark = socket.screen.marks["machine:gate"]
    await socket.say("resync", "machine:gate")
    await socket.until(lambda screen: screen.kinds("machine:gate") == ["snapshot", "snapshot"])
    assert socket.screen.marks["machine:gate"] == mark


async def test_subscribing_twice_is_one_subscription(gate: Engine, socket: Socket) -> None:
    await socket.subscribe("machine:gate", "machine:gate")
    await socket.sees("machine:gate")
    gate.fire("gate", "north", "open")
    await socket.sees("machine:gate", flow={"1:t1": 1})
    await socket.say("unsubscribe", "machine:gate")
    await socket.say("resync", "machine:gate")
    assert (await socket.error())["code"] == ErrorCode.BAD_TOPIC


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("not json", ErrorCode.NOT_JSON),
        ("[" * 4000, ErrorCode.NOT_JSON),
        (b"\x00\xff", ErrorCode.NOT_JSON),
        ("[1]", ErrorCode.UNKNOWN_TYPE),
        ('{"type": "fire", "topic": "machine:gate"}', ErrorCode.UNKNOWN_TYPE),
        ('{"type": "snapshot", "topic": "machine:gate"}', ErrorCode.UNKNOWN_TYPE),
        ('{"type": "subscribe", "topic": "machine:*"}', ErrorCode.BAD_TOPIC),
        ('{"type": "subscribe"}', ErrorCode.BAD_TOPIC),
        ('{"type": "resync", "topic": "overview"}', ErrorCode.BAD_TOPIC),
        ('{"type": "subscribe", "topic": "' + "x" * 5000 + '"}', ErrorCode.FRAME_TOO_LARGE),
    ],
)
async def test_a_bad_frame_gets_an_error_and_the_socket_goes_on(socket: Socket, frame: str | bytes, code: str) -> None:
    await socket.send(frame)
    error = await socket.error()
    assert error["code"] == code
    assert error["message"]
    await socket.subscribe("machine:gate")
    await socket.sees("machine:gate")


async def test_an_unknown_instance_or_machine_is_gone_and_not_an_error(socket: Socket) -> None:
    await socket.subscribe("machine:ghost", "instance:gate/ghost", "queue:gate/ghost")
    for topic in ("machine:ghost", "instance:gate/ghost", "queue:gate/ghost"):
        await socket.sees(topic, gone=True)


async def test_names_with_everything_in_them(gate: Engine, socket: Socket) -> None:
    name = 'a/b:{c} "d" \\ 🚂'
    gate.create("gate", name)
    await socket.subscribe(f"instance:gate/{name}")
    assert (await socket.sees(f"instance:gate/{name}"))["id"] == name


async def test_a_socket_watches_so_many_topics_and_no_more(gate: Engine, settings) -> None:
    configure(settings, LIVE={"topics_per_socket": 3})
    _, cookie = await visitor("viewer", "view")
    socket = Socket(cookie)
    await socket.connect()
    await socket.subscribe(*(f"instance:gate/{number}" for number in range(4)))
    error = await socket.error()
    assert (error["code"], error["topic"]) == (ErrorCode.TOO_MANY_TOPICS, "instance:gate/3")
    await socket.say("unsubscribe", "instance:gate/0")
    await socket.subscribe("machine:gate")
    await socket.sees("machine:gate")
    await socket.disconnect()


async def test_many_bad_frames_close_the_socket(socket: Socket) -> None:
    for _ in range(40):
        await socket.send("rubbish")
    assert await socket.end() == CloseCode.ABUSE


async def test_a_flood_of_good_commands_closes_it_too(socket: Socket) -> None:
    for _ in range(400):
        await socket.say("unsubscribe", "overview")
    assert await socket.end() == CloseCode.ABUSE


async def test_nobody_signed_in_is_closed_with_4401(gate: Engine) -> None:
    for cookie in ("", "nonsense"):
        socket = Socket(cookie)
        await socket.connect()
        assert await socket.end() == CloseCode.SIGNED_OUT


async def test_another_site_is_closed_with_4403(gate: Engine) -> None:
    _, cookie = await visitor("viewer", "view")
    socket = Socket(cookie, origin="https://elsewhere.example")
    await socket.connect()
    assert await socket.end() == CloseCode.BAD_ORIGIN


async def test_without_the_right_to_view_every_topic_is_forbidden(gate: Engine) -> None:
    _, cookie = await visitor("nobody")
    socket = Socket(cookie)
    await socket.connect()
    for topic in ("overview", "machine:gate", "instance:gate/north", "queues", "queue:shift/crew", "workers"):
        await socket.subscribe(topic)
        error = await socket.error()
        assert (error["code"], error["topic"]) == (ErrorCode.FORBIDDEN, topic)
    assert socket.screen.values == {}
    await socket.disconnect()


async def test_a_right_withdrawn_stops_the_next_command_at_once(gate: Engine) -> None:
    user, cookie = await visitor("viewer", "view")
    socket = Socket(cookie)
    await socket.connect()
    await socket.subscribe("machine:gate")
    await socket.sees("machine:gate")
    await database_sync_to_async(user.user_permissions.clear)()
    await socket.subscribe("overview")
    assert (await socket.error())["code"] == ErrorCode.FORBIDDEN
    gate.fire("gate", "north", "open")
    await silence(socket)
    assert socket.screen.values["machine:gate"]["counts"] == {"Shut": 1, "Open": 0}
    await socket.disconnect()


async def silence(socket: Socket) -> None:
    """Shows what comes for longer than a step takes to be seen."""
    await asyncio.sleep(0.2)
    while not await socket.receive_nothing(0.05):
        await socket.step()


async def watching(settings, recheck: float = 0.1) -> tuple[User, str, Socket]:
    """A socket that is looked at again very often."""
    configure(settings, LIVE={"recheck": recheck})
    user, cookie = await visitor("viewer", "view")
    socket = Socket(cookie)
    await socket.connect()
    await socket.subscribe("machine:gate")
    await socket.sees("machine:gate")
    return user, cookie, socket


async def test_a_right_withdrawn_stops_deliveries(gate: Engine, settings) -> None:
    user, _, socket = await watching(settings)
    await database_sync_to_async(user.user_permissions.clear)()
    error = await socket.error()
    assert (error["code"], error["topic"]) == (ErrorCode.FORBIDDEN, "machine:gate")
    gate.fire("gate", "north", "open")
    await silence(socket)
    assert socket.screen.kinds("machine:gate") == ["snapshot", "error"]
    await socket.disconnect()


async def test_logging_out_closes_the_socket(gate: Engine, settings) -> None:
    from django.test import Client

    _, cookie, socket = await watching(settings)

    def log_out() -> None:
        client = Client()
        client.cookies[settings.SESSION_COOKIE_NAME] = cookie
        client.logout()

    await database_sync_to_async(log_out)()
    assert await socket.end() == CloseCode.SIGNED_OUT


@pytest.mark.parametrize("change", ["password", "inactive", "deleted"])
async def test_an_account_that_is_no_longer_good_closes_the_socket(gate: Engine, settings, change: str) -> None:
    user, _, socket = await watching(settings)

    def spoil() -> None:
        if change == "deleted":
            user.delete()
            return
        if change == "password":
            user.set_password("another")
        user.is_active = change != "inactive"
        user.save()

    await database_sync_to_async(spoil)()
    assert await socket.end() == CloseCode.SIGNED_OUT


async def test_other_tabs_of_the_session_end_with_it_and_other_sessions_do_not(gate: Engine, settings) -> None:
    from django.contrib.sessions.backends.cache import SessionStore

    user, cookie, socket = await watching(settings)
    other_cookie = await database_sync_to_async(sign_in)(user)
    tab, other = Socket(cookie), Socket(other_cookie)
    for each in (tab, other):
        await each.connect()
        await each.subscribe("machine:gate")
        await each.sees("machine:gate")
    await database_sync_to_async(SessionStore(cookie).delete)()
    assert await socket.end() == CloseCode.SIGNED_OUT
    assert await tab.end() == CloseCode.SIGNED_OUT
    gate.fire("gate", "north", "open")
    await other.sees("machine:gate", counts={"Shut": 0, "Open": 1})
    await other.disconnect()


async def test_while_rights_cannot_be_told_nothing_is_shown(gate: Engine, settings) -> None:
    """The session store is away; the engine is not."""
    _, _, socket = await watching(settings)
    caches, settings.CACHES = settings.CACHES, stores.caches("unix:///nonexistent/store.sock", "t:")
    await asyncio.sleep(0.3)
    gate.fire("gate", "north", "open")
    await silence(socket)
    assert socket.screen.kinds("machine:gate") == ["snapshot"]
    await socket.subscribe("instance:gate/north")
    assert (await socket.error())["code"] == ErrorCode.UNAVAILABLE
    await silence(socket)
    assert socket.screen.kinds("instance:gate/north") == ["error"]
    settings.CACHES = caches
    await socket.sees("machine:gate", counts={"Shut": 0, "Open": 1})
    await socket.sees("instance:gate/north", state="Open")
    await socket.disconnect()


async def test_a_full_process_says_come_back_later(gate: Engine, settings) -> None:
    configure(settings, LIVE={"sockets": 1})
    _, cookie = await visitor("viewer", "view")
    first, second = Socket(cookie), Socket(cookie)
    await first.connect()
    await second.connect()
    assert await second.end() == CloseCode.TRY_LATER
    await first.subscribe("machine:gate")
    await first.sees("machine:gate")
    await first.disconnect()
