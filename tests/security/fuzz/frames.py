"""Websocket frames to the real consumer on the site's ASGI stack.

Each is answered, or the socket closed, as is documented; a well-behaved socket beside it goes on seeing what happens.
"""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

from machines.engine import Engine

from . import words
from .cases import Case, expand, times
from .kinds import Kind
from .results import Result
from .stage import Stage

MOST = 64  # frames of one socket, beside bursts
PATIENCE = 60.0  # seconds until a socket has to have answered
WATCHED = "machine:gate"
MARK = "instance:nowhere/mark"  # what is asked for last: the answer to it comes behind all others
EVERY = 20  # inputs between two looks whether the other socket sees what happens

Random = random.Random


class Frames(Kind):
    name = "frames"

    def __init__(self) -> None:
        self._stand: Stand | None = None

    def draw(self, rng: Random) -> Case:
        """Frames are texts, or ``{"bytes": text}`` with a character for each byte. ``who``: with a session, without
        one, or from a page of another site."""
        who = rng.choices(["viewer", "nobody", "elsewhere"], [20, 1, 1])[0]
        sent = [_frame(rng) for _ in range(rng.choice([1, 3, 10, MOST]))]
        if rng.random() < 0.1:
            sent += [rng.choice(sent)] * rng.choice([50, 300])
        return {"who": who, "frames": sent}

    def play(self, stage: Stage, case: Case) -> Result:
        if self._stand is None:
            self._stand = Stand(stage)
        return self._stand.play(case)

    def close(self) -> None:
        """The socket that was there all the time leaves."""
        if self._stand is not None:
            self._stand.close()


class Stand:
    """An event loop with the site in it, a machine to watch, and a socket that watches it all the time."""

    def __init__(self, stage: Stage) -> None:
        assert stage.site is not None, "frames need the site"
        from tests.live.builders import GATE, SHIFT

        self.runner = asyncio.Runner()
        self.engine: Engine = stage.fresh()
        for definition in (GATE, SHIFT):
            self.engine.publish(definition)
            self.engine.create(definition["id"], "north")
        self.cookie = stage.site.cookie()
        self.passed = 0
        self.played = 0
        self.witness = self.runner.run(self._open())

    async def _open(self) -> Any:
        from tests.live.sockets import Socket

        socket = Socket(self.cookie)
        await socket.connect()
        await socket.subscribe(WATCHED)
        await socket.sees(WATCHED)
        return socket

    def play(self, case: Case) -> Result:
        result = Result()
        self.runner.run(self._play(case, result))
        self.played += 1
        if self.played % EVERY == 1:
            self.runner.run(self._sees())
        return result

    def close(self) -> None:
        self.runner.run(self.witness.disconnect())
        self.runner.close()

    async def _play(self, case: Case, result: Result) -> None:
        from tests.live.sockets import Socket

        origin = "http://elsewhere" if case["who"] == "elsewhere" else "http://testserver"
        socket = Socket("" if case["who"] == "nobody" else self.cookie, origin=origin)
        await socket.connect()
        for frame in case["frames"]:
            text = expand(frame["bytes"] if isinstance(frame, dict) and "bytes" in frame else frame)
            await socket.send(
                text.encode("latin-1", "replace") if isinstance(frame, dict) and "bytes" in frame else text
            )
        await socket.say("resync", MARK)
        closed = False
        async with asyncio.timeout(PATIENCE):
            while not closed and not _answered(message := await socket.receive_output(PATIENCE)):
                closed = _noted(result, message)
        if not closed:
            await socket.disconnect()
        await self._keeps_up()

    async def _keeps_up(self) -> None:
        """Takes what came for the other socket meanwhile: nobody may take it for a slow one."""
        while not self.witness.output_queue.empty():
            await self.witness.step()
        assert self.witness.closed is None, f"the other socket was closed with {self.witness.closed}"

    async def _sees(self) -> None:
        self.passed += 1
        await asyncio.to_thread(self.engine.fire, "gate", "north", "open" if self.passed % 2 else "shut")
        await self.witness.sees(WATCHED, counts={"Shut": (self.passed + 1) % 2, "Open": self.passed % 2})


def _answered(message: dict[str, Any]) -> bool:
    return message["type"] == "websocket.send" and json.loads(message["text"]).get("topic") == MARK


def _noted(result: Result, message: dict[str, Any]) -> bool:
    """Holds one message against the protocol; whether it was the last."""
    from dashboard.live.messages import CloseCode, ErrorCode
    from tests.docs.live_protocol import SERVER

    if message["type"] == "websocket.close":
        code = message.get("code")
        result.record("socket", f"closed {code}")
        if code not in set(CloseCode):
            result.refuse(f"the socket was closed with {code}")
        return True
    content = json.loads(message["text"])
    kind = content.get("type")
    result.record("socket", content.get("code", kind), message["text"] if kind == "error" else "")
    wanted = {field.name for field in SERVER[kind].fields if field.required} if kind in SERVER else {"a known type"}
    if not wanted <= content.keys() or (kind == "error" and content["code"] not in set(ErrorCode)):
        result.refuse(f"the socket says {message['text'][:200]}")
    return False


# What is sent

TOPICS = [
    "overview", "machine:gate", "machine:shift", "machine:none", "instance:gate/north", "instance:gate/none",
    "queues", "queue:shift/crew", "queue:none/none", "workers", "job:shift/0-1", "job:shift/99999-9999999999999999",
    "instance:gate/", "machine:", "machine:gate/x", ":", "instance:gate/a/b c", "instance:gate/../..",
    "queue:shift/a:b", "machine:{x}", "job:shift/0-99999999999999999", "overview ", "OVERVIEW", "instance:gate/\x00",
    "instance:gate/\ud800", "machine:é", "instance:gate/*", "queue:shift/crew:leased", "instance:gate/" + "x" * 200,
    "instance:gate/" + "é" * 101,
]  # fmt: skip
COMMANDS = [
    "subscribe",
    "subscribe",
    "subscribe",
    "unsubscribe",
    "resync",
    "fire",
    "",
    "SUBSCRIBE",
    "snapshot",
    "error",
]


def _frame(rng: Random) -> Any:
    roll = rng.random()
    if roll < 0.5:
        frame = json.dumps({"type": rng.choice(COMMANDS), "topic": _topic(rng)}, ensure_ascii=rng.random() < 0.9)
    elif roll < 0.7:
        frame = json.dumps(
            {"type": _any(rng, rng.choice(COMMANDS)), "topic": _any(rng, rng.choice(TOPICS)), "x": words.value(rng)}
        )
    elif roll < 0.85:
        frame = words.json_text(rng)
    elif roll < 0.95:
        return {"bytes": "".join(chr(rng.randrange(256)) for _ in range(rng.choice([0, 1, 30, 5_000])))}
    else:
        return rng.choice(LARGE)
    return (
        frame if frame.isascii() or rng.random() < 0.5 else {"bytes": frame.encode(errors="replace").decode("latin-1")}
    )


def _topic(rng: Random) -> str:
    if rng.random() < 0.3:
        return f"instance:gate/{rng.randrange(1000)}"
    return rng.choice(TOPICS)


def _any(rng: Random, otherwise: Any) -> Any:
    return words.value(rng) if rng.random() < 0.5 else otherwise


LARGE: list[Any] = [
    times("[", 4_000), times('{"type":', 500), times("x", 5_000), times("x", 70_000), times("é", 2_049),
    times(" ", 4_096), times('{"type":"subscribe","topic":"machine:' + "x" * 4_000 + '"}', 1),
    {"bytes": times("\xff", 4_000)}, times('{"type":"subscribe","topic":"overview","x":' + "9" * 4_000 + "}", 1),
    times("-" + "1" * 4_090, 1), times('{"type":"subscribe","topic":' + "[" * 2_000 + "]" * 2_000 + "}", 1),
]  # fmt: skip
