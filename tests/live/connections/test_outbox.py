from __future__ import annotations

import asyncio

import pytest

from dashboard.live.outbox import Outbox
from dashboard.live.topics import Topic

A, B = Topic("machine", "a"), Topic("machine", "b")


def outbox() -> Outbox:
    return Outbox(lambda topic: f"snapshot {topic.machine}", notices=2)


async def drain(box: Outbox) -> list[str]:
    frames = []
    while True:
        try:
            frames.append(await asyncio.wait_for(box.next(), 0.01))
        except TimeoutError:
            return frames


async def test_a_delta_goes_out_as_it_is() -> None:
    box = outbox()
    box.delta(A, "delta 1")
    assert await drain(box) == ["delta 1"]


async def test_two_deltas_nobody_took_become_one_snapshot() -> None:
    box = outbox()
    box.delta(A, "delta 1")
    box.delta(B, "delta 1 of b")
    box.delta(A, "delta 2")
    assert len(box) == 2
    assert await drain(box) == ["snapshot a", "delta 1 of b"]


async def test_a_socket_that_takes_nothing_holds_one_entry_for_each_topic() -> None:
    box = outbox()
    for number in range(10_000):
        box.delta(A, f"delta {number}")
        box.status(f"status {number}", good=True)
    assert len(box) == 2
    assert await drain(box) == ["status 9999", "snapshot a"]


async def test_a_topic_without_a_value_yet_is_left_out() -> None:
    box = Outbox(lambda topic: None, notices=2)
    box.snapshot(A)
    assert await drain(box) == []


async def test_a_forgotten_topic_sends_nothing_more() -> None:
    box = outbox()
    box.delta(A, "delta 1")
    box.forget(A)
    assert await drain(box) == []


async def test_errors_come_first_and_too_many_are_noticed() -> None:
    box = outbox()
    box.delta(A, "delta 1")
    for number in range(3):
        box.notice(f"error {number}")
    assert box.overflowed
    assert await drain(box) == ["error 0", "error 1", "delta 1"]


async def test_muted_it_holds_values_and_good_news_back() -> None:
    box = outbox()
    box.mute(True)
    box.delta(A, "delta 1")
    box.status("live", good=True)
    box.notice("error")
    assert await drain(box) == ["error"]
    box.status("stale", good=False)
    assert await drain(box) == ["stale"]
    box.mute(False)
    assert await drain(box) == ["delta 1"]


async def test_whoever_waits_is_woken() -> None:
    box = outbox()
    waiting = asyncio.create_task(box.next())
    await asyncio.sleep(0)
    assert not waiting.done()
    box.snapshot(A)
    assert await waiting == "snapshot a"


@pytest.mark.parametrize("muted", [True, False])
async def test_its_size_counts_what_waits(muted: bool) -> None:
    box = outbox()
    box.mute(muted)
    box.delta(A, "delta 1")
    assert len(box) == 1
