"""Outboxes that are written to their connections in one callback of the event loop."""

from __future__ import annotations

import asyncio

import pytest

from dashboard.live.messages import Frame
from dashboard.live.outbox import Direct, Outbox, OutboxWriter
from dashboard.live.topics import Topic

A, B = Topic("machine", "a"), Topic("machine", "b")


class Wire:
    """A connection that takes ``room`` frames."""

    def __init__(self, room: int = 100) -> None:
        self.room = room
        self.frames: list[str] = []
        self.calls = 0  # of ``written``

    def is_ready(self) -> bool:
        return len(self.frames) < self.room

    def write(self, frame: Frame) -> None:
        assert self.is_ready()
        self.frames.append(frame)

    def written(self) -> None:
        self.calls += 1


class Broken(Wire):
    def write(self, frame: Frame) -> None:
        raise OSError("no such connection")


def outbox(wire: Wire, writer: OutboxWriter) -> Outbox:
    direct = Direct(wire, wire.written)
    return Outbox(lambda topic: Frame(f"snapshot {topic.machine}"), notices=8, direct=direct, writer=writer)


@pytest.fixture
def writer() -> OutboxWriter:
    return OutboxWriter(slice=1.0)


async def turn() -> None:
    """Let the event loop run what is due."""
    await asyncio.sleep(0)


async def test_what_waits_is_written_in_one_go_without_a_task(writer: OutboxWriter) -> None:
    wire = Wire()
    box = outbox(wire, writer)
    box.status(Frame("live"), good=True)
    box.delta(A, Frame("delta 1"))
    box.delta(B, Frame("delta 2"))
    assert wire.frames == []
    await turn()
    assert wire.frames == ["live", "delta 1", "delta 2"]
    assert wire.calls == 1
    assert len(box) == 0


async def test_a_thousand_outboxes_share_one_frame(writer: OutboxWriter) -> None:
    wires = [Wire() for _ in range(1000)]
    frame = Frame("delta")
    for wire in wires:
        outbox(wire, writer).delta(A, frame)
    await turn()
    assert all(wire.frames[0] is frame for wire in wires)
    assert frame.wire is frame.wire


async def test_a_slow_connection_gets_the_newest_from_its_task_and_the_others_theirs(writer: OutboxWriter) -> None:
    slow, good = Wire(room=1), Wire()
    boxes = outbox(slow, writer), outbox(good, writer)
    for number in range(4):
        for box in boxes:
            box.delta(A, Frame(f"delta {number}"))
        await turn()
    assert good.frames == ["delta 0", "delta 1", "delta 2", "delta 3"]
    assert slow.frames == ["delta 0"]
    assert len(boxes[0]) == 1
    assert await boxes[0].next() == "snapshot a"


async def test_nothing_overtakes_a_frame_that_the_task_sends(writer: OutboxWriter) -> None:
    wire = Wire(room=0)
    box = outbox(wire, writer)
    box.delta(A, Frame("delta 1"))
    await turn()
    assert await box.next() == "delta 1"
    wire.room = 100  # the connection takes frames again, but the task has not sent its own yet
    box.delta(A, Frame("delta 2"))
    await turn()
    assert wire.frames == []
    assert await box.next() == "delta 2"
    again = asyncio.create_task(box.next())
    await turn()
    box.delta(A, Frame("delta 3"))
    await turn()
    await turn()
    assert wire.frames == ["delta 3"], "once the task has nothing left, frames are written again"
    again.cancel()


async def test_a_muted_outbox_is_written_nothing_but_errors(writer: OutboxWriter) -> None:
    wire = Wire()
    box = outbox(wire, writer)
    box.mute(True)
    box.delta(A, Frame("delta 1"))
    box.status(Frame("live"), good=True)
    box.notice(Frame("error"))
    await turn()
    assert wire.frames == ["error"]
    box.mute(False)
    await turn()
    assert wire.frames == ["error", "live", "delta 1"]


async def test_a_connection_that_fails_is_left_to_its_task_and_costs_nobody_a_frame(writer: OutboxWriter) -> None:
    broken, good = Broken(), Wire()
    for wire in (broken, good):
        outbox(wire, writer).delta(A, Frame("delta"))
    await turn()
    assert good.frames == ["delta"]
    box = outbox(Broken(), writer)
    waiting = asyncio.create_task(box.next())
    box.delta(A, Frame("delta"))
    box.delta(B, Frame("delta"))
    assert await asyncio.wait_for(waiting, 60) == "delta"


async def test_an_outbox_that_left_is_written_nothing(writer: OutboxWriter) -> None:
    wire = Wire()
    box = outbox(wire, writer)
    box.delta(A, Frame("delta"))
    box.detach()
    await turn()
    assert wire.frames == []


async def test_the_event_loop_gets_its_turn_after_each_slice() -> None:
    ticks = iter(range(10_000))
    writer = OutboxWriter(slice=10, clock=lambda: next(ticks))
    wires = [Wire() for _ in range(100)]
    for wire in wires:
        outbox(wire, writer).delta(A, Frame("delta"))
    await turn()
    assert sum(len(wire.frames) for wire in wires) == 10
    outbox(wires[0], writer).delta(B, Frame("last"))
    while len(wires[0].frames) < 2:
        await turn()
    assert all(wire.frames[0] == "delta" for wire in wires)
