"""What somebody with the right to view tries, bounded in count and time, from an address of their own.

Each attack is a function of the scene that runs until it is through or ``SECONDS`` are over, and says what came of it:
how often each status, close code or frame.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from multiprocessing.connection import Connection as Pipe
from typing import Any
from urllib.parse import urlencode, urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from .scene import THERE, Scene

SECONDS = 12.0
PATIENCE = 40.0  # seconds to wait for one answer
CHECKS, SIDE_BY_SIDE = 200, 8  # definitions checked, and how many at a time
LARGE, SMALLER = 354, 65  # guards of one: 650 kB, and what a viewer may send at most
SOCKETS, TOPICS = 80, 64
FLOOD = 600  # sockets
HASHES = 50  # logins, all at a time
Tally = Counter[str]


def serve(pipe: Pipe, scene: Scene) -> None:
    """Told the name of an attack it carries it out, and answers with what came of it."""
    while (name := pipe.recv()) is not None:
        try:
            pipe.send(dict(ATTACKS[name](scene)))
        except Exception as error:
            pipe.send(RuntimeError(f"{name}: {error!r}"))


# Definitions


def heavy(guards: int) -> dict[str, Any]:
    """Guards of 1.8 kB each."""
    guard = " and ".join(f"a > {number}" for number in range(160))
    chain = [{"target": "S1", "guard": guard} for _ in range(guards)]
    return {"id": "m", "initial": "S0", "context": {"a": 0}, "states": {"S0": {"on": {"e": chain}}, "S1": {}}}


def definitions(scene: Scene) -> Tally:
    return _checked(scene, LARGE)


def smaller(scene: Scene) -> Tally:
    return _checked(scene, SMALLER)


def _checked(scene: Scene, guards: int) -> Tally:
    body = json.dumps({"definition": heavy(guards)})
    until = time.monotonic() + SECONDS

    def check(_: int) -> str:
        if time.monotonic() > until:
            return "not sent"
        headers = {"Authorization": f"Bearer {scene.token}", "Content-Type": "application/json"}
        return _said(scene, "POST", "/api/v1/definitions/check", body, headers)

    with ThreadPoolExecutor(SIDE_BY_SIDE) as threads:
        return _without_rest(Counter(threads.map(check, range(CHECKS))))


# Logins


def logins(scene: Scene) -> Tally:
    """Each name once, so that no name is limited."""
    page = _connection(scene)
    page.request("GET", "/accounts/login/")
    answer = page.getresponse()
    cookie = str(answer.getheader("Set-Cookie")).partition(";")[0]
    text = answer.read().decode()
    page.close()
    secret = text.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]

    def guess(number: int) -> str:
        form = urlencode({"csrfmiddlewaretoken": secret, "username": f"nobody{number}", "password": "guess"})
        headers = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
        return _said(scene, "POST", "/accounts/login/", form, headers)

    with ThreadPoolExecutor(HASHES) as threads:
        return Counter(threads.map(guess, range(HASHES)))


def _connection(scene: Scene) -> http.client.HTTPConnection:
    where = urlsplit(scene.origin)
    return http.client.HTTPConnection(where.hostname or "", where.port, timeout=PATIENCE, source_address=(THERE, 0))


def _said(scene: Scene, method: str, path: str, body: str, headers: dict[str, str]) -> str:
    connection = _connection(scene)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        answer.read()
        return str(answer.status)
    except OSError as error:
        return type(error).__name__
    finally:
        connection.close()


def _without_rest(found: Tally) -> Tally:
    del found["not sent"]
    return found


# Sockets


def snapshots(scene: Scene) -> Tally:
    """Every topic another instance, so that no snapshot is shared."""
    ids = iter(scene.ids)
    topics = [[f"instance:{scene.machine}/{id}" for id in islice(ids, TOPICS)] for _ in range(SOCKETS)]
    return asyncio.run(_watch(scene, topics))


def sockets(scene: Scene) -> Tally:
    return asyncio.run(_watch(scene, [[f"machine:{scene.machine}"]] * FLOOD))


async def _watch(scene: Scene, topics: list[list[str]]) -> Tally:
    tally: Tally = Counter()
    async with asyncio.TaskGroup() as group:
        for wanted in topics:
            group.create_task(_one(scene, wanted, tally))
    return tally


async def _one(scene: Scene, topics: list[str], tally: Tally) -> None:
    until = asyncio.get_running_loop().time() + SECONDS
    try:
        socket = await _connect(scene)
        tally["opened"] += 1
        for topic in topics:
            await socket.send(json.dumps({"type": "subscribe", "topic": topic}))
        async with asyncio.timeout_at(until):
            async for frame in socket:
                tally[_kind(str(frame))] += 1
        tally[f"closed {socket.close_code}"] += 1
    except ConnectionClosed as error:
        tally[f"closed {error.rcvd.code if error.rcvd else 1006}"] += 1
    except TimeoutError:
        socket.transport.abort()
    except (OSError, WebSocketException) as error:
        response = getattr(error, "response", None)
        tally[f"refused {response.status_code}" if response else type(error).__name__] += 1


async def _connect(scene: Scene) -> ClientConnection:
    return await connect(
        scene.origin.replace("http", "ws", 1) + "/ws/live/",
        origin=scene.origin,  # type: ignore[arg-type]
        additional_headers={"Cookie": scene.cookie},
        compression=None,
        ping_interval=None,
        open_timeout=PATIENCE,
        local_addr=(THERE, 0),
    )


def _kind(frame: str) -> str:
    kind = json.loads(frame)
    return f"error {kind['code']}" if kind["type"] == "error" else str(kind["type"])


ATTACKS: dict[str, Callable[[Scene], Tally]] = {
    "definitions": definitions,
    "smaller": smaller,
    "snapshots": snapshots,
    "sockets": sockets,
    "logins": logins,
}
TITLES = {
    "definitions": f"{SIDE_BY_SIDE} definitions of 650 kB checked at a time",
    "smaller": f"{SIDE_BY_SIDE} definitions of 120 kB checked at a time",
    "snapshots": f"first snapshots of {SOCKETS} x {TOPICS} topics",
    "sockets": f"{FLOOD} sockets of one person",
    "logins": f"{HASHES} logins from one address",
}


def rows(tally: dict[str, int]) -> Iterator[str]:
    for what, count in sorted(tally.items(), key=lambda one: -one[1]):
        yield f"{count} x {what}"
