"""Every topic and every command of the sockets, and the same topics over HTTP, by every kind of people and programs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from django.conf import settings as configured
from django.test import Client
from django.urls import reverse

from dashboard.live import messages, topics
from dashboard.live.messages import CloseCode, ErrorCode
from machines.engine import Engine
from tests.configuration import configure
from tests.live.sockets import PATIENCE, Socket
from tests.live.table import OF_MACHINE, PLAIN, RIGHT
from tests.security.people import BY_NAME, KINDS, Kind, make_client
from tests.security.world import build

HERE, ELSEWHERE, NOWHERE = "activation", "payment", "ghost"
TOPICS = [*PLAIN, *(form.format(name) for form in OF_MACHINE.values() for name in (HERE, ELSEWHERE, NOWHERE))]
COMMANDS = ("subscribe", "unsubscribe", "resync")


def test_every_kind_of_topic_and_every_command_is_in_the_table():
    assert {*OF_MACHINE, *PLAIN} == set(topics.RIGHTS)
    assert set(topics.RIGHTS.values()) == {RIGHT}
    assert set(COMMANDS) == set(messages.COMMANDS)


def may(kind: Kind, topic: str) -> bool:
    if topic in PLAIN:
        return kind.holds(RIGHT, "some")
    machine = topic.partition(":")[2].partition("/")[0]
    return kind.holds(RIGHT, "machine", (machine,))


@pytest.fixture
def clients(engine: Engine, transactional_db: None, settings: Any) -> dict[Kind, Client]:
    """The world of the matrix, where other threads see it, and a client of each kind."""
    configure(settings, LIVE={"commands": 1000, "notices": 100})
    build(engine)
    return {kind: make_client(kind) for kind in KINDS}


def open_socket(client: Client, **options: Any) -> Socket:
    cookie = client.cookies.get(configured.SESSION_COOKIE_NAME)
    shown = client.defaults.get("HTTP_AUTHORIZATION", "")
    return Socket(cookie.value if cookie else "", authorization=shown, **options)


def expected(kind: Kind, command: str) -> dict[str, str]:
    """Topic -> ``snapshot`` or the code of the error that it gets; nothing for what has no answer."""
    if command == "unsubscribe":
        return {}
    allowed = "snapshot" if command == "subscribe" else ErrorCode.BAD_TOPIC.value
    return {topic: allowed if may(kind, topic) else ErrorCode.FORBIDDEN.value for topic in TOPICS}


async def wrong_answers(kind: Kind, client: Client, command: str) -> dict[str, str]:
    """What a socket gets that is not what was expected."""
    socket, told, wanted = open_socket(client), {}, expected(kind, command)
    await socket.connect()
    for topic in TOPICS:
        await socket.say(command, topic)
    await socket.send('{"type": "nothing"}')  # which is always answered
    ended = False
    async with asyncio.timeout(PATIENCE):
        while not ended or wanted.keys() - told.keys():
            frame = await socket.step()
            if frame["type"] in ("snapshot", "error") and "topic" in frame:
                told[frame["topic"]] = frame.get("code", "snapshot")
            ended |= frame.get("code") == ErrorCode.UNKNOWN_TYPE
    await socket.disconnect()
    return {topic: told.get(topic, "") for topic in TOPICS if told.get(topic) != wanted.get(topic)}


async def test_each_command_on_each_topic_gives_each_kind_what_the_table_says(clients: dict[Kind, Client]):
    known = [kind for kind in clients if kind.known]
    for command in COMMANDS:
        found = await asyncio.gather(*(wrong_answers(kind, clients[kind], command) for kind in known))
        assert {kind.name: wrong for kind, wrong in zip(known, found, strict=True) if wrong} == {}, command


async def test_who_is_not_logged_in_has_no_socket_whatever_they_show(clients: dict[Kind, Client]):
    strangers = [kind for kind in clients if not kind.known]
    assert len(strangers) > 10
    for kind in strangers:
        socket = open_socket(clients[kind])
        await socket.connect()
        assert await socket.end() == CloseCode.SIGNED_OUT, kind


async def test_a_page_of_another_site_has_no_socket_whoever_is_logged_in(clients: dict[Kind, Client]):
    for kind in clients:
        socket = open_socket(clients[kind], origin="https://evil.example")
        await socket.send_input({"type": "websocket.connect"})
        message = await socket.receive_output(PATIENCE)
        while message["type"] != "websocket.close":
            assert message["type"] == "websocket.accept", kind
            message = await socket.receive_output(PATIENCE)
        assert message["code"] == CloseCode.BAD_ORIGIN, kind


async def test_a_topic_out_of_scope_is_answered_alike_whether_it_is_there_or_not(clients: dict[Kind, Client]):
    socket = open_socket(clients[BY_NAME["everything here"]])
    await socket.connect()
    for command in ("subscribe", "resync"):
        for form in OF_MACHINE.values():
            frames = []
            for name in (ELSEWHERE, NOWHERE):
                await socket.say(command, form.format(name))
                frames.append(json.dumps(await socket.error()).replace(name, "NAME"))
            assert frames[0] == frames[1]
    await socket.disconnect()


def test_over_http_each_topic_gives_each_kind_the_same(clients: dict[Kind, Client]):
    wrong, address = {}, reverse("signalbox:api-live")
    for kind, client in clients.items():
        for topic in TOPICS:
            wanted = 401 if not kind.known else 200 if may(kind, topic) else 403
            got = client.get(address, {"topic": topic}).status_code
            if got != wanted:
                wrong[f"{topic} by {kind}"] = (got, wanted)
    assert wrong == {}
