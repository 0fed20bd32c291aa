"""Sockets of people who see some machines only, or not what is sensitive: every topic, and whenever it changes."""

from __future__ import annotations

import json

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from guardian.shortcuts import assign_perm, remove_perm

from dashboard.live.hub.feeds import Feeds
from dashboard.live.messages import ErrorCode
from dashboard.live.outbox import Outbox
from dashboard.live.sockets.permissions import Rights, least
from dashboard.live.topics import Topic, parse
from machines.catalog.publishing import adopt
from machines.engine import Engine, WorkerInfo
from machines.engine.keys import Keys
from machines.people.permissions import Scope
from tests.catalog.samples import example
from tests.configuration import configure
from tests.live.builders import Screen, drain, live, world
from tests.live.sockets import Socket, sign_in, visitor
from tests.live.table import OF_MACHINE, PLAIN
from tests.vault import NAME, SECRET, Filled, fill

pytestmark = pytest.mark.django_db(transaction=True)
MASKED = "•••"


@pytest.fixture
def site(gate: Engine) -> Engine:
    """Two machines of which rights can be given, and a worker that holds jobs of both."""
    gate.fire("shift", "north", "begin")
    (job,) = gate.take("shift", "crew", "w1")
    now = gate.live("gate").now
    held = {"id": job.id, "src": "crew", "instance": "north", "attempt": 1, "since": now, "queue": "crew"}
    gate.beat(
        WorkerInfo(
            "w1", "host", 7, ["gate/post", "shift/crew"], in_hand=2, started=now, seen=now,
            holding=[held | {"machine": "shift"}, held | {"machine": "gate"}],
            lacking={"shift/crew": ["x"], "gate/post": ["y"]},
        )
    )  # fmt: skip
    for name in ("gate", "shift"):
        adopt(name)
    return gate


def granted(name: str, machine: str, *rights: str) -> tuple[User, str]:
    user = User.objects.create_user(name, password="x")
    grant(user, machine, *rights)
    return user, sign_in(user)


def grant(user: User, machine: str, *rights: str) -> None:
    for right in rights:
        assign_perm(f"machines.{right}_machine", user, adopt(machine))


async def opened(cookie: str) -> Socket:
    socket = Socket(cookie)
    await socket.connect()
    return socket


@pytest.mark.parametrize("command", ["subscribe", "resync"])
async def test_topics_of_a_machine_out_of_scope_are_forbidden_whether_it_is_there_or_not(site, command) -> None:
    _, cookie = await database_sync_to_async(granted)("one", "shift", "view")
    socket = await opened(cookie)
    for form in OF_MACHINE.values():
        for name in ("gate", "ghost"):
            await socket.say(command, form.format(name))
            error = await socket.error()
            assert (error["code"], error["topic"]) == (ErrorCode.FORBIDDEN, form.format(name))
    assert socket.screen.values == {}
    await socket.subscribe(*(form.format("shift") for form in OF_MACHINE.values()))
    for form in OF_MACHINE.values():
        assert not (await socket.sees(form.format("shift"))).get("gone")
    await socket.disconnect()


async def test_topics_of_many_machines_hold_those_in_scope_alone(site) -> None:
    _, cookie = await database_sync_to_async(granted)("one", "shift", "view")
    socket = await opened(cookie)
    await socket.subscribe(*PLAIN)
    for topic in PLAIN:
        await socket.sees(topic)
    values = socket.screen.values
    assert set(values["overview"]["machines"]) == {"shift"}
    assert set(values["queues"]["queues"]) == {"shift/crew"}
    row = values["workers"]["workers"]["w1"]
    assert [job["machine"] for job in row["holding"]] == ["shift"]
    assert (row["queues"], set(row["lacking"])) == (["shift/crew"], {"shift/crew"})
    assert "gate" not in json.dumps(values)
    await socket.disconnect()


async def test_a_right_on_one_machine_given_and_withdrawn_takes_effect_while_a_socket_is_open(site, settings) -> None:
    configure(settings, LIVE={"recheck": 0.1})
    user, cookie = await database_sync_to_async(granted)("one", "shift", "view")
    socket = await opened(cookie)
    await socket.subscribe("overview", "machine:shift")
    await socket.sees("machine:shift")
    await socket.until(lambda screen: set(screen.values.get("overview", {}).get("machines", ())) == {"shift"})
    await database_sync_to_async(grant)(user, "gate", "view")
    await socket.until(lambda screen: set(screen.values["overview"]["machines"]) == {"gate", "shift"})
    await database_sync_to_async(remove_perm)(
        "machines.view_machine", user, await database_sync_to_async(adopt)("shift")
    )
    error = await socket.error()
    assert (error["code"], error["topic"]) == (ErrorCode.FORBIDDEN, "machine:shift")
    await socket.until(lambda screen: set(screen.values["overview"]["machines"]) == {"gate"})
    site.create("gate", "south")
    await socket.until(lambda screen: screen.values["overview"]["machines"]["gate"]["total"] == 2)
    await socket.disconnect()


async def test_an_instance_names_no_kin_of_machines_out_of_scope(engine) -> None:
    for name in ("payment", "delivery"):
        engine.publish(example(name))
    engine.create("delivery", "R-1", {"article": "lamp", "amount": 20})
    child = engine.get("delivery", "R-1").children["payment"]["id"]
    _, cookie = await database_sync_to_async(granted)("one", "payment", "view")
    _, all_of_them = await visitor("viewer", "view")
    some, whole = await opened(cookie), await opened(all_of_them)
    for socket in (some, whole):
        await socket.subscribe(f"instance:payment/{child}")
    assert (await some.sees(f"instance:payment/{child}"))["parent"] is None
    assert (await whole.sees(f"instance:payment/{child}"))["parent"]["id"] == "R-1"
    for socket in (some, whole):
        await socket.disconnect()


@pytest.fixture
def vault(engine: Engine) -> Filled:
    found = fill(engine)
    adopt(NAME)
    return found


async def test_what_is_sensitive_is_masked_without_the_right_and_shown_with_it(vault, engine, settings) -> None:
    configure(settings, LIVE={"recheck": 0.1})
    user, cookie = await visitor("viewer", "view")
    _, whole = await visitor("supervisor", "view", "reveal")
    here, job = f"instance:{NAME}/{vault.shut}", f"job:{NAME}/{vault.leased}"
    masked, clear = await opened(cookie), await opened(whole)
    for socket in (masked, clear):
        await socket.subscribe(here, job, f"job:{NAME}/{vault.dead}", f"instance:{NAME}/{vault.charging}", *PLAIN)
        for topic in (here, job, f"job:{NAME}/{vault.dead}", f"instance:{NAME}/{vault.charging}", *PLAIN):
            await socket.sees(topic)
    engine.fire(NAME, vault.shut, "fill", {"card": f"{SECRET}-2"})
    for socket in (masked, clear):
        await socket.until(lambda screen: screen.values[here]["revision"] == 3)
    assert masked.screen.values[here]["data"]["card"] == MASKED
    assert masked.screen.values[job]["progress"]["note"] == MASKED
    assert SECRET not in json.dumps(masked.screen.frames)
    assert clear.screen.values[here]["data"]["card"] == f"{SECRET}-2"
    assert SECRET in clear.screen.values[f"job:{NAME}/{vault.dead}"]["error"]
    await database_sync_to_async(grant)(user, NAME, "reveal")
    await masked.until(lambda screen: screen.values[here]["data"]["card"] == f"{SECRET}-2")
    for socket in (masked, clear):
        await socket.disconnect()


async def test_sockets_with_the_same_rights_share_one_value_and_one_read() -> None:
    """However many watch, there are as many values as there are different rights."""
    board = Feeds(Keys("sb:"), most=10)
    boxes = [Outbox(board.snapshot, notices=8) for _ in range(9)]
    permitted = [
        Topic("overview"),
        Topic("overview", scope=Scope(False, frozenset({"gate"}))),
        least(parse("overview")),
    ]
    for number, box in enumerate(boxes):
        board.join(box, permitted[number % 3])
    seen = world(live("gate", Shut=2), live("shift", Rest=1))
    board.take(type(seen)(seen.directory, {}, seen.at))
    assert {source.machine for source in board.plan() if source.kind == "partition"} == {"gate", "shift"}
    board.take(
        type(seen)(seen.directory, seen.readings | {s: [] for s in board.list_unread() if s.kind == "workers"}, 1000)
    )
    screens = [await drain(box, Screen()) for box in boxes]
    assert len({board.snapshot(topic) for topic in permitted}) == 3
    shown = [set(screen.values["overview"]["machines"]) for screen in screens]
    assert shown == [{"gate", "shift"}, {"gate"}, set()] * 3


def test_without_reveal_instances_and_jobs_are_redacted_and_nothing_else() -> None:
    rights = Rights({"view": Scope(True)}, Scope(False, frozenset({"open"})))
    for kind, form in OF_MACHINE.items():
        topic = rights.permit(parse(form.format("gate")))
        assert topic is not None
        assert topic.redacted is (kind in ("instance", "job"))
        assert str(topic) == form.format("gate")
    topic = rights.permit(parse("instance:open/north"))
    assert topic is not None
    assert not topic.redacted
