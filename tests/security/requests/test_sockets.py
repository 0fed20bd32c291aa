"""Nobody starves others with sockets: caps for each person and address, turns for first snapshots, shared looks."""

import asyncio

import pytest

from dashboard.live.hub.feeds import Feeds
from dashboard.live.hub.hub import Hub
from dashboard.live.hub.sources import World
from dashboard.live.limits import Limits
from dashboard.live.messages import CloseCode, ErrorCode
from dashboard.live.outbox import Outbox
from dashboard.live.sockets import permissions
from dashboard.live.sockets.admission import Quotas, quotas
from dashboard.live.sockets.permissions import Rights, RightsUnknown, asking
from dashboard.live.topics import parse
from machines.engine.keys import Keys
from tests.configuration import configure
from tests.live.conftest import gate
from tests.live.sockets import PATIENCE, Socket, sign_in, visitor

__all__ = ["gate"]
KEYS = Keys("t:")


@pytest.fixture
def limit(settings):
    def to(**limits):
        configure(settings, LIVE={"reconcile": 60.0} | limits)

    return to


async def opened(*sockets: Socket) -> None:
    for socket in sockets:
        await socket.connect()


async def closed(*sockets: Socket) -> None:
    for socket in sockets:
        await socket.disconnect()


pages = pytest.mark.django_db(transaction=True)


@pages
async def test_one_person_has_so_many_sockets_whatever_their_session(gate, limit):
    limit(sockets_per_person=2)
    user, cookie = await visitor("viewer", "view")
    other = await asyncio.to_thread(sign_in, user)
    first, second = Socket(cookie), Socket(other)
    await opened(first, second)
    for again in (cookie, other):
        third = Socket(again)
        await third.connect()
        assert await third.end() == CloseCode.TOO_MANY
    _, another = await visitor("somebody", "view")
    friend = Socket(another)
    await friend.connect()
    await friend.subscribe("overview")
    await friend.sees("overview")
    await first.disconnect()
    third = Socket(cookie)
    await third.connect()
    await third.subscribe("overview")
    await third.sees("overview")
    await closed(second, third, friend)


@pages
async def test_a_session_with_all_its_sockets_is_turned_away_before_anything_is_looked_up(gate, limit, monkeypatch):
    limit(sockets_per_person=1)
    _, cookie = await visitor("viewer", "view")
    first = Socket(cookie)
    await first.connect()
    await first.subscribe("overview")
    await first.sees("overview")
    monkeypatch.setattr("channels.auth.get_user", None)  # whoever asks for it fails
    second = Socket(cookie)
    await second.connect()
    assert await second.end() == CloseCode.TOO_MANY
    await first.disconnect()


@pages
async def test_one_address_has_so_many_sockets_whoever_is_there(gate, limit):
    limit(sockets_per_address=2)
    held = [Socket((await visitor(name, "view"))[1], address="192.0.2.1") for name in ("ann", "bob")]
    await opened(*held)
    _, cookie = await visitor("eve", "view")
    refused, elsewhere = Socket(cookie, address="192.0.2.1"), Socket(cookie, address="192.0.2.2")
    await refused.connect()
    assert await refused.end() == CloseCode.TOO_MANY
    await elsewhere.connect()
    await elsewhere.subscribe("overview")
    await elsewhere.sees("overview")
    await closed(*held, elsewhere)


@pages
async def test_an_address_that_connects_too_often_is_refused_before_the_handshake(gate, limit):
    limit(connects=2, connects_per_second=0.001)
    for _ in range(2):
        socket = Socket(address="192.0.2.1")
        await socket.connect()
        assert await socket.end() == CloseCode.SIGNED_OUT
    socket = Socket(address="192.0.2.1")
    await socket.send_input({"type": "websocket.connect"})
    assert (await socket.receive_output(PATIENCE))["type"] == "websocket.close"
    socket = Socket(address="2001:db8::1")
    await socket.connect()
    await socket.end()


def test_attempts_come_back_with_time():
    now = 0.0
    here = Quotas(Limits(connects=2, connects_per_second=1.0), clock=lambda: now)
    assert [here.attempt("a") for _ in range(3)] == [True, True, False]
    assert here.attempt("b")
    now = 1.0
    assert [here.attempt("a") for _ in range(2)] == [True, False]


@pages
async def test_one_person_watches_so_many_topics_in_all_windows(gate, limit):
    limit(topics_per_person=3)
    _, cookie = await visitor("viewer", "view")
    first, second = Socket(cookie), Socket(cookie)
    await opened(first, second)
    await first.subscribe("overview", "queues")
    await first.sees("queues")
    await second.subscribe("overview", "overview", "workers")
    error = await second.error()
    assert (error["code"], error["topic"]) == (ErrorCode.TOO_MANY_TOPICS, "workers")
    assert "3 topics" in error["message"]
    await first.say("unsubscribe", "queues")
    await first.subscribe("machine:gate")
    await first.sees("machine:gate")
    await first.disconnect()
    await second.subscribe("workers", "machine:gate")
    await second.sees("machine:gate")
    await second.disconnect()
    assert [person.topics for person in quotas()._people.values()] == [0]


@pages
async def test_commands_of_all_their_sockets_count_together_and_another_socket_brings_none_back(gate, limit):
    limit(commands_of_person=5, commands_of_person_per_second=0.001)
    _, cookie = await visitor("viewer", "view")
    first, second = Socket(cookie), Socket(cookie)
    await opened(first, second)
    await first.subscribe("overview", "queues", "workers")
    await first.sees("workers")
    await second.subscribe("overview", "queues", "workers")
    assert await second.end() == CloseCode.ABUSE
    await first.disconnect()
    third = Socket(cookie)
    await third.connect()
    await third.say("unsubscribe", "overview")
    assert await third.end() == CloseCode.ABUSE


async def test_many_commands_of_a_session_share_a_look_and_none_begins_before_they_came(monkeypatch):
    looks, may = [], asyncio.Event()

    async def look(sessions, *, deadline):
        looks.append(sorted(sessions))
        await may.wait()
        return {session: Rights({}, session) for session in sessions}

    monkeypatch.setattr(permissions, "look", look)
    first = asyncio.create_task(asking().ask("a", deadline=1))
    await asyncio.sleep(0.01)
    rest = [asyncio.create_task(asking().ask(session, deadline=1)) for session in "aabca" for _ in range(20)]
    await asyncio.sleep(0.01)
    may.set()
    assert next(held.reveal for held in await asyncio.gather(first, *rest)) == "a"
    assert looks[0] == ["a"]
    assert sum(len(look) for look in looks) <= 5
    assert {session for look in looks[1:] for session in look} == {"a", "b", "c"}


async def test_a_look_that_fails_fails_for_all_who_share_it_and_the_next_is_another(monkeypatch):
    answers = [RightsUnknown("gone"), {"a": None}]

    async def look(sessions, *, deadline):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(permissions, "look", look)
    told = await asyncio.gather(*(asking().ask("a", deadline=1) for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in told] == [RightsUnknown] * 3
    assert await asking().ask("a", deadline=1) is None


def box(board: Feeds, owner: str) -> Outbox:
    return Outbox(board.snapshot, notices=1, owner=owner)


async def test_first_snapshots_are_read_by_turns_of_people():
    board = Feeds(KEYS, most=1000)
    board.take(World(directory={"m": 1}, at=1))
    mallory, ann = box(board, "mallory"), box(board, "ann")
    for number in range(100):
        board.join(mallory, parse(f"instance:m/{number}"))
    for number in range(3):
        board.join(ann, parse(f"instance:m/ann-{number}"))
    wanted = board.first(10)
    assert len(wanted) == 10
    assert {source.name for source in wanted} >= {"ann-0", "ann-1", "ann-2"}
    assert len([source for source in board.first(200) if source.kind == "instance"]) == 103


async def test_what_was_read_is_handed_out_with_the_loop_free_in_between():
    hub = Hub("redis://nowhere", KEYS, Limits(slice=0.0))
    watcher = box(hub._feeds, "ann")
    for number in range(50):
        hub._feeds.join(watcher, parse(f"instance:m/{number}"))
    turns = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    await hub._take(World(directory={}, at=1))
    ticking.cancel()
    assert len(watcher) == 50
    assert turns >= 45


async def test_a_topic_that_was_left_while_it_was_handed_out_is_passed_over():
    board = Feeds(KEYS, most=10)
    watcher = box(board, "ann")
    board.join(watcher, parse("machine:m"))
    touched = board.lay(World(directory={}, at=1))
    board.leave(watcher, parse("machine:m"))
    for topic in touched:
        board.offer(topic)
    assert len(watcher) == 0
