"""That a definition was published is told to every process at once; one that did not hear it finds out by itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

from dashboard.live.hub.hub import Hub
from machines.engine import Engine
from machines.engine.jobs.wakeups import DEFINITIONS
from machines.engine.keys import Keys
from machines.patterns import Bus, Message
from tests.engine.builders import door, machine
from tests.live.builders import GATE
from tests.live.conftest import Watcher
from tests.live.service import Service
from tests.live.sockets import PATIENCE

OTHER = GATE | {"description": "the same, with other words"}


async def test_every_hub_shows_a_new_machine_and_a_new_version_at_once(
    gate: Engine, watch: Callable[..., Watcher], make_hub: Callable[..., Hub]
) -> None:
    """No reconcile comes to the rescue, and what is not watched yet has no pulse that anybody hears."""
    watchers = [watch("overview", "machine:gate", hub=make_hub()) for _ in range(3)]
    for watcher in watchers:
        await watcher.sees("machine:gate", version=1)
        await watcher.until(lambda screen: set(screen.values["overview"]["machines"]) == {"gate", "shift"})
    published = await asyncio.to_thread(gate.publish, door())
    for watcher in watchers:
        await watcher.until(lambda screen: published.name in screen.values["overview"]["machines"])
    await asyncio.to_thread(gate.publish, OTHER)
    for watcher in watchers:
        await watcher.sees("machine:gate", version=2)
    await asyncio.to_thread(gate.publish, GATE, version=1)  # an old one made current again: nothing rings
    for watcher in watchers:
        await watcher.sees("machine:gate", version=1)


async def test_a_hub_that_is_cut_off_has_missed_nothing_when_it_is_back(
    gate: Engine, watch: Callable[..., Watcher]
) -> None:
    watcher = watch("overview")
    await watcher.sees("overview")
    for held in gate.client.client_list():
        if held.get("ssub", "0") != "0":
            gate.client.client_kill_filter(_id=held["id"])
    gate.publish(machine("later", {"A": {}}))
    await watcher.until(lambda screen: "later" in screen.values["overview"]["machines"])


async def test_without_the_right_to_the_channel_the_live_view_goes_on(
    own_server, watch: Callable[..., Watcher], prefix: str, make_hub: Callable[..., Hub]
) -> None:
    engine = Engine.from_url(own_server.url, prefix=prefix)
    engine.publish(GATE)
    engine.create("gate", "north")
    engine.client.execute_command(
        "ACL", "SETUSER", "web", "on", "nopass", "~*", "resetchannels", "&__keyspace@*", "+@all"
    )
    url = own_server.url.replace("unix://", "unix://web:x@")
    watcher = watch("machine:gate", hub=make_hub(url))
    await watcher.sees("machine:gate", counts={"Shut": 1, "Open": 0})
    engine.fire("gate", "north", "open")
    await watcher.sees("machine:gate", counts={"Shut": 0, "Open": 1})
    limited = Engine.from_url(url, prefix=prefix)
    assert limited.publish(OTHER).version == 2  # what cannot be told is published all the same
    limited.client.close()
    engine.client.close()


def test_whoever_publishes_tells_it_on_the_bus(engine: Engine, prefix: str) -> None:
    with Bus(engine.client, prefix).subscribe(DEFINITIONS) as heard:
        for version, definition in ((1, door()), (2, door() | {"description": "other words"}), (1, door())):
            engine.publish(definition, version=version)
            assert heard.get(60) == Message(DEFINITIONS, {"machine": "door", "version": version})
    assert Keys(prefix).news not in set(engine.client.scan_iter(match=f"{prefix}*"))  # no worker, no bell


async def test_two_processes_of_the_site_tell_their_pages(
    gate: Engine, redis_url: str, prefix: str, tmp_path, service: Service
) -> None:
    other = Service(redis_url, prefix, tmp_path / "other", reconcile=60.0)
    try:
        async with service.connect() as first, other.connect() as second:
            for socket in (first, second):
                await socket.send(json.dumps({"type": "subscribe", "topic": "machine:gate"}))
                await _until(socket, 1)
            await asyncio.to_thread(gate.publish, OTHER)
            for socket in (first, second):
                await _until(socket, 2)
    finally:
        other.stop()


async def _until(socket, version: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            frame = json.loads(await socket.recv())
            if frame.get("topic") == "machine:gate" and frame["data"].get("version") == version:
                return
