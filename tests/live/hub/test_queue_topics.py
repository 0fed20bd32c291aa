"""What the topics of queues and jobs hold, and how it follows what happens to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dashboard.live.hub.feeds import Feeds
from dashboard.live.hub.sources import Source, Tally, World
from dashboard.live.outbox import Outbox
from dashboard.live.topics import parse
from machines.engine import Engine
from machines.engine.keys import Keys
from tests.live.builders import SHIFT, Screen, drain
from tests.live.conftest import Watcher

Watch = Callable[..., Watcher]
WHO = {"actor": "sue", "reason": "a test"}
TOPIC = "queue:shift/crew"


async def test_a_queue_is_told_with_its_counters_and_without_what_it_has_not(gate: Engine, watch: Watch) -> None:
    gate.fire("shift", "north", "begin")
    value = await watch(TOPIC).sees(TOPIC, ready=1)
    stats = gate.stats("shift")["crew"]
    depths = {"ready": 1, "leased": 0, "delayed": 0, "dead": 0, "handled": 0, "oldest": stats.oldest}
    counters = {"taken", "completed", "failed", "lost", "died", "withdrawn", "purged"}
    assert value == depths | {"enqueued": 1, "waits": {}, "runs": {}} | dict.fromkeys(counters, 0)


async def test_who_paused_a_queue_shows_and_is_gone_when_it_is_resumed(gate: Engine, watch: Watch) -> None:
    gate.fire("shift", "north", "begin")
    watcher = watch(TOPIC)
    await watcher.sees(TOPIC)
    gate.pause("shift", "crew", now=1000, **WHO)
    await watcher.sees(TOPIC, paused={"since": 1000, "actor": "sue", "reason": "a test"})
    gate.resume_queue("shift", "crew", **WHO)
    await watcher.until(lambda screen: "paused" not in screen.values[TOPIC])


async def test_limits_and_histograms_show(gate: Engine, watch: Watch) -> None:
    gate.fire("shift", "north", "begin")
    watcher = watch(TOPIC)
    await watcher.sees(TOPIC)
    gate.limit("shift", "crew", concurrency=4, rate="100/s", **WHO)
    await watcher.sees(TOPIC, concurrency=4, rate="100/s")
    (job,) = gate.take("shift", "crew", "w1", now=gate.stats("shift")["crew"].oldest + 5)
    gate.complete(job, now=job.taken + 300)
    await watcher.sees(TOPIC, waits={"3": 1}, runs={"9": 1}, completed=1)
    assert "oldest" not in watcher.screen.values[TOPIC]
    assert watcher.screen.kinds(TOPIC).count("snapshot") == 1


async def test_queues_of_all_partitions_are_added_up(redis_url: str, prefix: str, watch: Watch) -> None:
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=4)
    engine.publish(SHIFT)
    for number in range(20):
        engine.create("shift", f"i{number}")
        engine.fire("shift", f"i{number}", "begin")
    await watch(TOPIC).sees(TOPIC, ready=20, enqueued=20)
    engine.client.close()


async def test_a_job_is_followed_from_the_queue_to_its_end(gate: Engine, watch: Watch) -> None:
    gate.fire("shift", "north", "begin")
    (job,) = gate.jobs("shift", "crew")
    topic = f"job:shift/{job.id}"
    watcher = watch(topic)
    await watcher.sees(topic, place="ready", instance="north", attempt=0)
    (job,) = gate.take("shift", "crew", "w1")
    await watcher.sees(topic, place="leased", worker="w1", attempt=1, lease_until=job.lease_until)
    gate.progress(job, 3, note="packing", now=job.taken)
    await watcher.sees(topic, progress={"done": 3, "note": "packing", "at": job.taken})
    gate.progress(job, 4, 8, now=job.taken)
    await watcher.sees(topic, progress={"done": 4, "total": 8, "note": "", "at": job.taken})
    gate.complete(job)
    await watcher.sees(topic, gone=True)


@pytest.fixture
def board() -> Feeds:
    return Feeds(Keys("sb:"), most=10)


def tally(queue: str = "crew", at: int = 1000, **counters: int) -> World:
    row: dict[str, Any] = {"ready": 0, "leased": 0, "delayed": 0, "dead": 0, "oldest": None, "rules": {}}
    reading = Tally(at, {queue: row | {"counters": counters}})
    return World({"shift": 1}, {Source("stats", "shift", 0): reading}, at)


async def shown(board: Feeds, *worlds: World) -> Screen:
    box = Outbox(board.snapshot, notices=8)
    board.join(box, parse(TOPIC))
    board.take(World({"shift": 1}, {}, 1000))
    screen = Screen()
    for seen in worlds:
        board.take(seen)
        await drain(box, screen)
    return screen


async def test_a_counter_that_went_back_starts_a_new_epoch(board: Feeds) -> None:
    """A server restored from an older file: whoever takes differences has to begin anew."""
    screen = await shown(board, tally(failed=3), tally(failed=5, at=1100), tally(failed=4, at=1200))
    assert screen.kinds(TOPIC) == ["snapshot", "delta", "snapshot"]
    assert screen.frames[0]["epoch"] == screen.frames[1]["epoch"] != screen.frames[2]["epoch"]


async def test_time_going_on_is_no_news_of_a_queue(board: Feeds) -> None:
    screen = await shown(board, tally(failed=3), tally(failed=3, at=9000))
    assert screen.kinds(TOPIC) == ["snapshot"]


async def test_a_queue_nobody_feeds_is_gone(board: Feeds) -> None:
    screen = await shown(board, tally("other"))
    assert screen.values[TOPIC] == {"gone": True}
