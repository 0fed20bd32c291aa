from __future__ import annotations

import pytest

from dashboard.live.hub.feeds import Feeds, Full
from dashboard.live.hub.sources import Source, World
from dashboard.live.outbox import Outbox
from dashboard.live.topics import Topic, parse
from machines.engine.keys import Keys
from tests.live.builders import Screen, drain, live, world

GATE, OVERVIEW = Topic("machine", "gate"), Topic("overview")


@pytest.fixture
def board() -> Feeds:
    return Feeds(Keys("sb:"), most=10)


@pytest.fixture
def box(board: Feeds) -> Outbox:
    return Outbox(board.snapshot, notices=8)


def settle(board: Feeds, seen: World) -> None:
    """Reads, as the hub does, until nothing is unread."""
    board.take(World(seen.directory, {}, seen.at))
    board.take(seen)


async def test_the_first_value_is_a_snapshot_and_the_next_a_delta(board: Feeds, box: Outbox) -> None:
    board.join(box, GATE)
    settle(board, world(live(Shut=2, Open=0)))
    screen = await drain(box, Screen())
    settle(board, world(live(Shut=1, Open=1, now=1060), at=1060))
    await drain(box, screen)
    assert screen.kinds("machine:gate") == ["snapshot", "delta"]
    assert screen.frames[-1]["data"] == {"counts": {"Shut": 1, "Open": 1}, "now": 1060}
    assert screen.values["machine:gate"]["counts"] == {"Shut": 1, "Open": 1}


async def test_time_going_on_is_no_news_but_the_next_snapshot_has_it(board: Feeds, box: Outbox) -> None:
    board.join(box, GATE)
    settle(board, world(live(Shut=2)))
    screen = await drain(box, Screen())
    settle(board, world(live(Shut=2, now=9000), at=9000))
    await drain(box, screen)
    assert screen.kinds("machine:gate") == ["snapshot"]
    box.snapshot(GATE)
    await drain(box, screen)
    assert (screen.frames[-1]["at"], screen.frames[-1]["data"]["now"], screen.frames[-1]["seq"]) == (9000, 9000, 1)


async def test_a_second_watcher_gets_the_value_that_is_there(board: Feeds, box: Outbox) -> None:
    board.join(box, GATE)
    settle(board, world(live(Shut=2)))
    late = Outbox(board.snapshot, notices=8)
    board.join(late, GATE)
    assert not board.list_unread()
    assert (await drain(late, Screen())).values["machine:gate"]["counts"] == {"Shut": 2}


async def test_topics_share_what_is_read(board: Feeds, box: Outbox) -> None:
    for topic in (GATE, OVERVIEW, Topic("queues"), Topic("queue", "gate", "crew")):
        board.join(box, topic)
    board.take(World({"gate": 1}, {}, 1000))
    own = {Source("partition", "gate", 0), Source("stats", "gate", 0), Source("edited", "gate")}
    assert board.list_unread() == own | {Source("workers")}
    assert board.roots() == {"sb:{gate:0}"}
    assert board.of({"sb:{gate:0}", "sb:{other:0}"}) == own


async def test_an_overview_of_some_machines_reads_and_holds_only_these(board: Feeds, box: Outbox) -> None:
    board.join(box, Topic("overview", name="gate,gone"))
    board.take(World({"gate": 1, "other": 12}, {}, 1000))
    assert board.list_unread() == {Source("partition", "gate", 0), Source("workers")}
    seen = {Source("partition", "gate", 0): live(Shut=2), Source("workers"): []}
    board.take(World({"gate": 1, "other": 12}, seen, 1100))
    assert list((await drain(box, Screen())).values["overview:gate,gone"]["machines"]) == ["gate"]


async def test_only_what_is_watched_is_listened_to(board: Feeds, box: Outbox) -> None:
    board.join(box, GATE)
    board.take(World({"gate": 2, "other": 5}, {}, 1000))
    assert board.roots() == {"sb:{gate:0}", "sb:{gate:1}"}
    board.leave(box, GATE)
    assert board.roots() == set()


async def test_an_instance_listens_to_its_own_partition_only(board: Feeds, box: Outbox) -> None:
    board.join(box, Topic("instance", "gate", "north"))
    board.take(World({"gate": 4}, {}, 1000))
    assert len(board.roots()) == 1


async def test_a_new_machine_appears_on_the_overview(board: Feeds, box: Outbox) -> None:
    board.join(box, OVERVIEW)
    board.take(World({}, {Source("workers"): []}, 1000))
    screen = await drain(box, Screen())
    assert screen.values["overview"] == {"machines": {}, "workers": 0}
    board.take(World({"gate": 1}, {}, 1001))
    board.take(world(live(Shut=1)))
    await drain(box, screen)
    assert screen.values["overview"]["machines"]["gate"]["total"] == 1


@pytest.mark.parametrize("topic", ["machine:ghost", "instance:ghost/x", "queue:ghost/q"])
async def test_what_is_not_there_is_gone(board: Feeds, box: Outbox, topic: str) -> None:
    board.join(box, parse(topic))
    board.take(World({}, {}, 1000))
    assert (await drain(box, Screen())).values[topic] == {"gone": True}


@pytest.mark.parametrize(
    "later",
    [
        world(live(Shut=2, flow={"1:t1": 4}), at=1100),
        world(live(Shut=2), at=1100),
        world(live(Shut=2, flow={"1:t1": 5}), at=1000 - 5000),
        World({}, {}, 1100),
    ],
    ids=["a counter fell", "a counter is gone", "the clock went back", "the machine is gone"],
)
async def test_a_server_that_went_back_in_time_starts_a_new_epoch(board: Feeds, box: Outbox, later: World) -> None:
    board.join(box, GATE)
    settle(board, world(live(Shut=2, flow={"1:t1": 5})))
    screen, before = await drain(box, Screen()), board.epoch
    settle(board, later)
    await drain(box, screen)
    assert board.epoch != before
    assert screen.kinds("machine:gate") == ["snapshot", "snapshot"]
    assert screen.marks["machine:gate"] == (board.epoch, 1)


async def test_counters_that_grow_keep_the_epoch(board: Feeds, box: Outbox) -> None:
    board.join(box, GATE)
    before = board.epoch
    for flow in ({}, {"1:t1": 1}, {"1:t1": 1, "2:t1": 1}):
        settle(board, world(live(flow=flow)))
    assert board.epoch == before


async def test_no_more_topics_than_allowed(board: Feeds, box: Outbox) -> None:
    for number in range(10):
        board.join(box, Topic("machine", f"m{number}"))
    with pytest.raises(Full):
        board.join(box, GATE)
    board.join(box, Topic("machine", "m3"))
    board.leave(box, Topic("machine", "m3"))
    board.join(box, GATE)


async def test_leaving_what_is_not_watched_is_fine(board: Feeds, box: Outbox) -> None:
    board.leave(box, GATE)
    assert board.snapshot(GATE) is None
